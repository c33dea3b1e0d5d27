import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer, Between } from "../../../src/shared/server/api";
import { Feed, POINTS } from "../../../src/features/telemetry/feed";
import type { TelemetryAnswer } from "../../../src/shared/report";

const S = 1e9;
const going = new AbortController().signal;

/** A server that has a reading each second up to `seconds`, and thins as ours does: to the points that were asked for. */
function server(seconds: number) {
  const asked: (Between & { readonly points: number; readonly rows: number })[] = [];
  const state = { seconds, fails: false };
  const ask = async (points: number, between: Between): Promise<Answer<TelemetryAnswer>> => {
    if (state.fails) return { kind: "failed", message: "gone" };
    const { since = 0, until = Infinity } = between;
    const every = Array.from({ length: state.seconds }, (_, at) => (at + 1) * S).filter((time) => time > since && time <= until);
    const times = every.length <= points ? every : Array.from({ length: points }, (_, at) => every[Math.floor((at * every.length) / points)]!);
    asked.push({ ...between, points, rows: times.length });
    const series = [{ name: "power", device: "GPU-1", unix_ns: times, values: times }];
    return { kind: "ok", value: { id: "x", live: true, series, bands: [], notes: [], lost_packets: 0, dropped: [], devices: [] } };
  };
  return { asked, state, feed: new Feed(ask) };
}

const timesOf = ({ now }: Feed): readonly number[] => now!.series[0]!.unix_ns;

test("all of it is asked for once, then what was added", async () => {
  const { feed, asked, state } = server(300);
  await feed.grow(going);
  state.seconds = 302;
  await feed.grow(going);
  assert.deepEqual(timesOf(feed), Array.from({ length: 302 }, (_, at) => (at + 1) * S));
  assert.equal(asked[0]!.since, undefined);
  assert.ok(asked[1]!.rows < 20, "an overlap of some seconds, since series are not written at the same moment");
});

test("a long run is thin as a whole, and a stretch of it is got in detail and then not again", async () => {
  const { feed, asked } = server(100_000);
  await feed.grow(going);
  assert.equal(timesOf(feed).length, POINTS);
  assert.ok(feed.isFine(1 * S, 100_000 * S));
  const [from, to] = [40_000 * S, 40_100 * S];
  assert.ok(!feed.isFine(from, to));
  await feed.detail(from, to, going);
  assert.ok(feed.isFine(from, to));
  assert.ok(feed.isFine(from - 40 * S, to - 40 * S), "what lies beside came along");
  assert.equal(timesOf(feed).filter((time) => time > from && time <= to).length, 100);
  assert.ok(timesOf(feed).every((time, at, all) => at === 0 || time > all[at - 1]!));
  assert.deepEqual([asked[1]!.since, asked[1]!.until], [39_950 * S, 40_150 * S]);
});

test("after a long pause all of it is asked for anew", async () => {
  const { feed, asked, state } = server(300);
  await feed.grow(going);
  state.seconds = 50_000;
  await feed.grow(going);
  assert.deepEqual(asked.map(({ since }) => since === undefined), [true, false, true]);
  assert.equal(timesOf(feed).length, POINTS);
});

test("what grew too large is asked for anew, and memory stays bounded", async () => {
  const { feed, state } = server(500);
  for (let round = 0; round < 60; round++) {
    await feed.grow(going);
    state.seconds += 400;
  }
  assert.ok(timesOf(feed).length < 8 * POINTS);
});

test("what fails keeps what was there, and what was called off changes nothing", async () => {
  const { feed, state } = server(10);
  await feed.grow(going);
  state.fails = true;
  assert.equal((await feed.grow(going)).kind, "failed");
  state.fails = false;
  state.seconds = 12;
  await feed.grow(AbortSignal.abort());
  await feed.detail(0, 5 * S, AbortSignal.abort());
  assert.equal(timesOf(feed).length, 10);
});
