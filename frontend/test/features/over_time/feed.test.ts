import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed, POINTS } from "../../../src/features/over_time/feed";
import type { TelemetryAnswer } from "../../../src/shared/report";
import type { TimeRange } from "../../../src/shared/server/api";
import type { Result } from "../../../src/shared/server/result";

const S = 1e9;
const signal = new AbortController().signal;

/** A server with a sample per second up to `seconds`, downsampled to the requested points like ours. */
function server(seconds: number) {
  const requests: (TimeRange & { readonly points: number; readonly rows: number })[] = [];
  const state = { seconds, fails: false };
  const request = async (points: number, range: TimeRange): Promise<Result<TelemetryAnswer>> => {
    if (state.fails) return { kind: "failed", message: "gone" };
    const { since = 0, until = Infinity } = range;
    const every = Array.from({ length: state.seconds }, (_, at) => (at + 1) * S).filter((time) => time > since && time <= until);
    const times = every.length <= points ? every : Array.from({ length: points }, (_, at) => every[Math.floor((at * every.length) / points)]!);
    requests.push({ ...range, points, rows: times.length });
    const series = [{ name: "power", device: "GPU-1", unix_ns: times, values: times }];
    return { kind: "ok", value: { id: "x", live: true, series, bands: [], notes: [], lost_packets: 0, dropped: [], devices: [] } };
  };
  return { requests, state, feed: new Feed(request) };
}

const timesOf = ({ current }: Feed): readonly number[] => current!.series[0]!.unix_ns;

test("everything is requested once, then only new samples", async () => {
  const { feed, requests, state } = server(300);
  await feed.update(signal);
  state.seconds = 302;
  await feed.update(signal);
  assert.deepEqual(timesOf(feed), Array.from({ length: 302 }, (_, at) => (at + 1) * S));
  assert.equal(requests[0]!.since, undefined);
  assert.ok(requests[1]!.rows < 20, "an overlap of some seconds, since series are not written at the same moment");
});

test("a long run is downsampled as a whole, and a range in detail is requested once", async () => {
  const { feed, requests } = server(100_000);
  await feed.update(signal);
  assert.equal(timesOf(feed).length, POINTS);
  assert.ok(feed.isDetailed(1 * S, 100_000 * S));
  const [from, to] = [40_000 * S, 40_100 * S];
  assert.ok(!feed.isDetailed(from, to));
  await feed.loadDetail(from, to, signal);
  assert.ok(feed.isDetailed(from, to));
  assert.ok(feed.isDetailed(from - 40 * S, to - 40 * S), "the margin was loaded as well");
  assert.equal(timesOf(feed).filter((time) => time > from && time <= to).length, 100);
  assert.ok(timesOf(feed).every((time, at, all) => at === 0 || time > all[at - 1]!));
  assert.deepEqual([requests[1]!.since, requests[1]!.until], [39_950 * S, 40_150 * S]);
});

test("after a long pause everything is requested again", async () => {
  const { feed, requests, state } = server(300);
  await feed.update(signal);
  state.seconds = 50_000;
  await feed.update(signal);
  assert.deepEqual(requests.map(({ since }) => since === undefined), [true, false, true]);
  assert.equal(timesOf(feed).length, POINTS);
});

test("data that grew too large is requested again, so memory stays bounded", async () => {
  const { feed, state } = server(500);
  for (let round = 0; round < 60; round++) {
    await feed.update(signal);
    state.seconds += 400;
  }
  assert.ok(timesOf(feed).length < 8 * POINTS);
});

test("a failure keeps the data, and a cancelled request changes nothing", async () => {
  const { feed, state } = server(10);
  await feed.update(signal);
  state.fails = true;
  assert.equal((await feed.update(signal)).kind, "failed");
  state.fails = false;
  state.seconds = 12;
  await feed.update(AbortSignal.abort());
  await feed.loadDetail(0, 5 * S, AbortSignal.abort());
  assert.equal(timesOf(feed).length, 10);
});
