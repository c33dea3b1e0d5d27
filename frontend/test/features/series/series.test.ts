import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunPoint, RunSeries } from "../../../src/shared/report";
import { areas, partsOf, regimeTitle } from "../../../src/features/series/areas";
import { seriesMarkdown } from "../../../src/features/series/markdown";
import { inOrder, membersOf, named } from "../../../src/features/series/members";
import { MOST, rowIn, rowText } from "../../../src/features/series/series_keys";
import { placed, ticks } from "../../../src/features/series/scale";
import { about, against, heading, kneeOf, range, turnOf } from "../../../src/features/series/summary";
import { reduce, START } from "../../../src/app/state";
import { entry } from "../../recordings";

/** A point of these ns by regime. */
function point(value: string, times: Readonly<Record<string, number>>, fields: Partial<RunPoint> = {}): RunPoint {
  const ns = Object.values(times).reduce((sum, one) => sum + one, 0);
  return {
    run: `w${value}/x`, runs: [`w${value}/x`], value, ns, low_ns: ns - 1e6, high_ns: ns + 1e6, speedup: 1, regime: "input", steps: 6,
    by_regime: Object.entries(times).map(([regime, b_ns]) => ({ regime, title: `the ${regime}`, a_ns: 0, b_ns, delta_ns: b_ns })), ...fields,
  };
}

const POINTS = [
  point("1", { input: 30e6, sync: 0, compute: 10e6 }),
  point("2", { input: 10e6, sync: 0, compute: 10e6 }, { speedup: 2 }),
  point("4", { input: 1e6, sync: 0, compute: 10e6 }, { speedup: 3.6, runs: ["w4/x", "w4/y"], regime: "compute" }),
];

function told(fields: Partial<RunSeries> = {}): RunSeries {
  return { schema: 1, kind: "sweep", varies: "workers", per: "step", headline: "It falls.", points: POINTS, notes: [], ...fields };
}

test("a row is spelt in the address and read again, whatever its names hold", () => {
  const keys = ["a,b/x", "100%/y z", "c&d=e/#", "x"];
  assert.deepEqual(rowIn(rowText(keys)), keys);
  assert.equal(rowIn(undefined), undefined);
  assert.equal(rowIn("one"), undefined, "one makes no row");
  assert.deepEqual(rowIn("a,b,a,,%E0%A4%A,b"), ["a", "b"], "each once, and nothing of what is broken");
  assert.equal(rowIn(Array.from({ length: 30 }, (_, at) => `r${at}`).join())?.length, MOST);
});

test("a row holds what is there, in its order, as long as the chosen recording is of it", () => {
  const [a, b, heard] = [entry("r", "a"), entry("r", "b"), entry("r", "t", { evidence_source: "telemetry" })];
  const found = membersOf([a, b, heard], ["r/b", "r/t", "r/gone", "r/a"], a);
  assert.deepEqual(found?.entries, [b, a]);
  assert.deepEqual(found?.missing, ["r/t", "r/gone"]);
  assert.equal(membersOf([a, b], ["r/b", "r/c"], a), undefined);
  assert.equal(membersOf([a, b], undefined, a), undefined);
});

test("names are ordered as people count", () => {
  assert.deepEqual(inOrder(["w10/a", "w2/a", "w1/a"]), ["w1/a", "w2/a", "w10/a"]);
});

test("a name of the answer is a recording again, in the logdir itself as below it", () => {
  const [top, below] = [entry(".", "a"), entry("r/s", "a")];
  assert.equal(named("a", [below, top]), top);
  assert.equal(named("r/s/a", [below, top]), below);
  assert.equal(named("r/s/b", [below, top]), undefined);
});

test("points stand along a line, by powers where that would crowd them, else at equal distances", () => {
  assert.deepEqual(placed([0, 2, 4]), { kind: "linear", at: [0, 0.5, 1] });
  const { kind, at } = placed([1, 2, 4, 8, 64]);
  assert.equal(kind, "logarithmic");
  assert.ok(Math.abs(at[1]! - 1 / 6) < 1e-12);
  assert.deepEqual(placed([0, 1, 64]), { kind: "even", at: [0, 0.5, 1] }, "nothing has no power");
  assert.equal(placed([1, Number.NaN, 3]).kind, "even", "what Python reads as a number, and we do not");
  assert.deepEqual(placed([4]).at, [0.5]);
});

test("ticks are round and reach the highest", () => {
  assert.deepEqual(ticks(43e6, 5), [0, 10e6, 20e6, 30e6, 40e6]);
  assert.deepEqual(ticks(1000, 5), [0, 200, 400, 600, 800, 1000]);
  assert.deepEqual(ticks(0, 5), [0]);
  assert.deepEqual(ticks(Number.NaN, 5), [0]);
});

test("what the device works at lies below what is lost, and together they are the time", () => {
  const [compute, input, ...none] = areas(POINTS);
  assert.deepEqual([compute?.regime, input?.regime, none], ["compute", "input", []]);
  assert.deepEqual(compute?.low, [0, 0, 0]);
  assert.deepEqual(input?.low, [10e6, 10e6, 10e6]);
  assert.deepEqual(input?.high, POINTS.map(({ ns }) => ns));
  assert.ok(input?.named);
  assert.deepEqual(partsOf(POINTS[2]!).map(({ ns }) => ns), [1e6, 0, 10e6]);
});

test("a crumb of a regime is drawn and not named", () => {
  const crumbs = [point("1", { input: 1, compute: 100 }), point("2", { input: 1, compute: 90 })];
  assert.deepEqual(areas(crumbs).map(({ regime, named: put }) => [regime, put]), [["compute", true], ["input", false]]);
});

test("a regime has its title from any row, else its own name", () => {
  assert.equal(regimeTitle(POINTS, "compute"), "the compute");
  assert.equal(regimeTitle(POINTS, "other"), "other");
});

test("knee and turn are found among the points", () => {
  assert.equal(kneeOf(told({ knee: { run: "w4/x", value: "4", because: "" } })), POINTS[2]);
  assert.equal(kneeOf(told()), undefined);
  const turn = { since: "w2/x", last_good: "w1/x", regime: "input", slowdown: 1.3, because: "" };
  assert.equal(turnOf(told({ kind: "history", regression_point: turn })), POINTS[1]);
});

test("what the times are is said for each kind", () => {
  assert.equal(about(told()), "Time per step by workers");
  assert.match(about(told({ kind: "settings", varies: "device" })), /by device, the longest first/);
  assert.match(about(told({ kind: "history", varies: "run" })), /in the order asked for/);
  assert.match(about(told({ kind: "apart", varies: "run" })), /cannot be held against each other/);
  assert.deepEqual([heading(told()), heading(told({ kind: "history" }))], ["Workers", "Run"]);
});

test("how far a time is known is its interval, over several runs their range, of one step nothing", () => {
  assert.equal(range(POINTS[0]!), "39.0\u00a0ms to 41.0\u00a0ms");
  assert.match(range(POINTS[2]!), / over 2 runs$/);
  assert.equal(range(point("1", { input: 1 }, { steps: 1 })), "one step: not known");
  assert.deepEqual(POINTS.map(against), ["", "2.00×", "3.60×"]);
});

test("Markdown holds the same, and no name is markup", () => {
  const said = seriesMarkdown(told({ headline: "<b>", knee: { run: "w4/x", value: "4", because: "more brings little" }, notes: ["[a](b)"] }));
  assert.ok(said.startsWith("## \\<b\\>"));
  assert.ok(said.includes("| 2: w2/x | 20.0 ms | 19.0 ms to 21.0 ms | 2.00× | the input |"));
  assert.ok(said.includes("| 4: w4/x, w4/y (knee) |"));
  assert.ok(said.includes("Knee at 4: more brings little."));
  assert.ok(said.includes("- \\[a\\](b)"));
  assert.ok(!said.includes("\u00a0"));
});

test("of what is apart, Markdown has times and no factors", () => {
  const said = seriesMarkdown(told({ kind: "apart", varies: "run" }));
  assert.ok(said.includes("| w2/x | 20.0 ms |"));
  assert.ok(!said.includes("×"));
});

test("a row is part of the state, and the same one changes nothing", () => {
  const state = reduce(START, { type: "row", keys: ["a", "b"] });
  assert.deepEqual(state.row, ["a", "b"]);
  assert.equal(reduce(state, { type: "row", keys: ["a", "b"] }), state);
  assert.notEqual(reduce(state, { type: "row", keys: ["b", "a"] }), state);
  assert.ok(!("row" in reduce(state, { type: "row", keys: undefined })));
  assert.equal(reduce(START, { type: "row", keys: undefined }), START);
});
