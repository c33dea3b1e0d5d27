import assert from "node:assert/strict";
import { test } from "node:test";
import type { Settled } from "../../../src/shared/server/api";
import type { Lane, Timeline, TimelineAnswer } from "../../../src/shared/report";
import { find, lastBefore, most } from "../../../src/features/timeline/hit";
import { layout } from "../../../src/features/timeline/layout";
import { levelOf, placeOf, TILE_PIXELS, tileOf, Tiles, touched } from "../../../src/features/timeline/tiles";

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

/** A server that answers when it is told to. */
function server() {
  const asked: { begin: number; end: number; signal: AbortSignal; answer: () => void }[] = [];
  const ask = (begin: number, end: number, _pixels: number, signal: AbortSignal) =>
    new Promise<Settled<TimelineAnswer>>((resolve) => {
      const value = { id: "x", state: "done", progress: 1, problem: "", timeline: timeline(begin, end) };
      asked.push({ begin, end, signal, answer: () => resolve(signal.aborted ? { kind: "aborted" } : { kind: "ok", value }) });
    });
  return { asked, ask };
}

test("a level has a point for each pixel, and its tiles cover the recording without a gap", () => {
  assert.equal(levelOf(whole, TILE_PIXELS, whole), 0);
  assert.equal(levelOf({ begin: 0, end: 512_000 }, TILE_PIXELS, whole), 1);
  assert.equal(levelOf(whole, TILE_PIXELS * 4, whole), 2);
  assert.deepEqual(touched({ begin: 300_000, end: 600_000 }, 2, whole), [1, 2]);
  assert.equal(placeOf(2, 1, whole).end, placeOf(2, 2, whole).begin);
});

test("until a tile is there the coarser one is drawn, and then no tile is asked for again", async () => {
  const { asked, ask } = server();
  let told = 0;
  const tiles = new Tiles(whole, timeline(0, 1_024_000), ask, () => told++);
  const span = { begin: 0, end: 200_000 };
  assert.ok(tiles.seen(span, 512).every(({ tile }) => tile.level === 0));
  assert.ok(asked.length > 0 && asked.length <= 3);
  for (const one of [...asked]) one.answer();
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(told > 0);
  assert.ok(tiles.seen(span, 512).every(({ tile }) => tile.level > 0));
  const places = asked.map(({ begin, end }) => `${begin}-${end}`);
  assert.equal(new Set(places).size, places.length);
});

test("wishes of the past are called off", () => {
  const { asked, ask } = server();
  const tiles = new Tiles(whole, timeline(0, 1_024_000), ask, () => undefined);
  tiles.seen({ begin: 0, end: 10_000 }, 512);
  const before = [...asked];
  tiles.seen({ begin: 900_000, end: 910_000 }, 512);
  assert.ok(before.every(({ signal }) => signal.aborted));
  tiles.close();
});

const tile = tileOf(timeline(1_000, 2_000, lane([0, 100, 0], [100, 50, 1], [600, 10, 0])), 0, 0, { begin: 1_000, end: 2_000 });
const seen = [{ tile, part: { begin: 1_000, end: 2_000 } }];
const { tracks } = layout([lane()], 0);

test("what lies under the pointer is found, also a little beside it", () => {
  const at = (time: number, reach = 5) => find(seen, tracks[0]!, tracks[0]!.rows[0]!, time, reach)?.name;
  assert.deepEqual([at(1_050), at(1_100), at(1_149), at(1_160), at(1_598), at(1_400)], ["gemm", "copy", "copy", undefined, "gemm", undefined]);
});

test("the last number that is not above a value", () => {
  const sorted = Float64Array.from([1, 3, 3, 7]);
  assert.deepEqual([0, 1, 3, 6, 7, 9].map((value) => lastBefore(sorted, value)), [-1, 0, 2, 2, 3, 3]);
});

test("what takes most of the time that is seen comes first, counted only where it is seen", () => {
  const found = most(seen, tracks[0]!, { begin: 1_050, end: 2_000 }, 5).map(({ name, time }) => [name, time]);
  assert.deepEqual(found, [["gemm", 60], ["copy", 50]]);
});

test("tiles are busy until the last of them is there or was called off, and then it is told", async () => {
  const { asked, ask } = server();
  let told = 0;
  const tiles = new Tiles(whole, timeline(0, 1_024_000), ask, () => told++);
  assert.ok(!tiles.busy);
  tiles.seen({ begin: 0, end: 200_000 }, 512);
  assert.ok(tiles.busy);
  tiles.seen(whole, 512); // all of it is there: what was on its way is called off
  for (const one of [...asked]) one.answer();
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(!tiles.busy);
  assert.ok(told > 0);
});
