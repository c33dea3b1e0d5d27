import assert from "node:assert/strict";
import { test } from "node:test";
import { find, largest, lastBefore } from "../../../src/features/timeline/hit";
import { layout } from "../../../src/features/timeline/layout";
import { levelOf, overlapping, rangeOf, TILE_PIXELS, tileOf, Tiles } from "../../../src/features/timeline/tiles";
import type { Lane, Timeline, TimelineAnswer } from "../../../src/shared/report";
import type { Result } from "../../../src/shared/server/result";

const whole = { begin: 0, end: 1_024_000 };

function lane(...things: readonly (readonly [number, number, number])[]): Lane {
  const column = <T,>(of: (thing: readonly [number, number, number]) => T) => things.map(of);
  return {
    group: "device", title: "stream 7", track: "device 1", depth: 0,
    begin_ns: column(([begin]) => begin), length_ns: column(([, length]) => length), key: column(([, , key]) => key),
    name: column(([, , key]) => key), count: column(() => 1), busy: column(() => 1),
  };
}

function timeline(begin: number, end: number, ...lanes: readonly Lane[]): Timeline {
  return { begin_ns: begin, end_ns: end, first_ns: 0, last_ns: 1_024_000, resolution_ns: 1, lanes, names: ["gemm", "copy"], keys: ["compute", "transfer"], lanes_left_out: 0 };
}

/** A server that responds when the test says so. */
function server() {
  const requests: { begin: number; end: number; signal: AbortSignal; answer: () => void }[] = [];
  const request = (begin: number, end: number, _pixels: number, signal: AbortSignal) =>
    new Promise<Result<TimelineAnswer>>((resolve) => {
      const value = { id: "x", state: "done", progress: 1, problem: "", timeline: timeline(begin, end) };
      requests.push({ begin, end, signal, answer: () => resolve(signal.aborted ? { kind: "aborted" } : { kind: "ok", value }) });
    });
  return { requests, request };
}

test("a level has a point for each pixel, and its tiles cover the recording without gaps", () => {
  assert.equal(levelOf(whole, TILE_PIXELS, whole), 0);
  assert.equal(levelOf({ begin: 0, end: 512_000 }, TILE_PIXELS, whole), 1);
  assert.equal(levelOf(whole, TILE_PIXELS * 4, whole), 2);
  assert.deepEqual(overlapping({ begin: 300_000, end: 600_000 }, 2, whole), [1, 2]);
  assert.equal(rangeOf(2, 1, whole).end, rangeOf(2, 2, whole).begin);
});

test("until a tile arrives the coarser one is drawn, and no tile is requested twice", async () => {
  const { requests, request } = server();
  let calls = 0;
  const tiles = new Tiles(whole, timeline(0, 1_024_000), request, () => calls++);
  const span = { begin: 0, end: 200_000 };
  assert.ok(tiles.visible(span, 512).every(({ tile }) => tile.level === 0));
  assert.ok(requests.length > 0 && requests.length <= 3);
  for (const one of [...requests]) one.answer();
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(calls > 0);
  assert.ok(tiles.visible(span, 512).every(({ tile }) => tile.level > 0));
  const places = requests.map(({ begin, end }) => `${begin}-${end}`);
  assert.equal(new Set(places).size, places.length);
});

test("requests for tiles that are no longer visible are cancelled", () => {
  const { requests, request } = server();
  const tiles = new Tiles(whole, timeline(0, 1_024_000), request, () => undefined);
  tiles.visible({ begin: 0, end: 10_000 }, 512);
  const before = [...requests];
  tiles.visible({ begin: 900_000, end: 910_000 }, 512);
  assert.ok(before.every(({ signal }) => signal.aborted));
  tiles.close();
});

const tile = tileOf(timeline(1_000, 2_000, lane([0, 100, 0], [100, 50, 1], [600, 10, 0])), 0, 0, { begin: 1_000, end: 2_000 });
const visible = [{ tile, part: { begin: 1_000, end: 2_000 } }];
const { tracks } = layout([lane()], 0, 0);

test("the block under the pointer is found, also slightly beside it", () => {
  const at = (time: number, reach = 5) => find(visible, tracks[0]!, tracks[0]!.rows[0]!, time, reach)?.name;
  assert.deepEqual([at(1_050), at(1_100), at(1_149), at(1_160), at(1_598), at(1_400)], ["gemm", "copy", "copy", undefined, "gemm", undefined]);
});

test("the last number that is not above a value", () => {
  const sorted = Float64Array.from([1, 3, 3, 7]);
  assert.deepEqual([0, 1, 3, 6, 7, 9].map((value) => lastBefore(sorted, value)), [-1, 0, 2, 2, 3, 3]);
});

test("the blocks with the most visible time come first", () => {
  const rows = largest(visible, tracks[0]!, { begin: 1_050, end: 2_000 }, 5).map(({ name, time }) => [name, time]);
  assert.deepEqual(rows, [["gemm", 60], ["copy", 50]]);
});

test("tiles are busy until the last request has ended, and then the listener is called", async () => {
  const { requests, request } = server();
  let calls = 0;
  const tiles = new Tiles(whole, timeline(0, 1_024_000), request, () => calls++);
  assert.ok(!tiles.busy);
  tiles.visible({ begin: 0, end: 200_000 }, 512);
  assert.ok(tiles.busy);
  tiles.visible(whole, 512); // everything is in the cache: the requests are cancelled
  for (const one of [...requests]) one.answer();
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(!tiles.busy);
  assert.ok(calls > 0);
});
