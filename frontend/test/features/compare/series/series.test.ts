import assert from "node:assert/strict";
import { test } from "node:test";
import { reduce, START } from "../../../../src/app/state";
import { areas, partsOf, regimeTitle } from "../../../../src/features/compare/series/areas";
import { entryNamed, inNaturalOrder, membersOf } from "../../../../src/features/compare/series/members";
import { placeValues, ticks } from "../../../../src/features/compare/series/scale";
import { MAX_RUNS, seriesKeys, seriesText } from "../../../../src/features/compare/series/series_keys";
import { pointHeading, range, regressionPointOf, relativeSpeed, seriesTitle } from "../../../../src/features/compare/series/summary";
import type { RunPoint, RunSeries } from "../../../../src/shared/report";
import { entry } from "../../../recordings";

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

function series(fields: Partial<RunSeries> = {}): RunSeries {
  return { schema: 1, kind: "sweep", varies: "workers", per: "step", headline: "It falls.", points: POINTS, notes: [], ...fields };
}

test("a series is written to the address and parsed again, whatever its names contain", () => {
  const keys = ["a,b/x", "100%/y z", "c&d=e/#", "x"];
  assert.deepEqual(seriesKeys(seriesText(keys)), keys);
  assert.equal(seriesKeys(undefined), undefined);
  assert.equal(seriesKeys("one"), undefined, "one is no series");
  assert.deepEqual(seriesKeys("a,b,a,,%E0%A4%A,b"), ["a", "b"], "without duplicates and invalid escapes");
  assert.equal(seriesKeys(Array.from({ length: 30 }, (_, at) => `r${at}`).join())?.length, MAX_RUNS);
});

test("a series has the recordings in the list, in its order, if the chosen one is part of it", () => {
  const [a, b, telemetry] = [entry("r", "a"), entry("r", "b"), entry("r", "t", { evidence_source: "telemetry" })];
  const members = membersOf([a, b, telemetry], ["r/b", "r/t", "r/gone", "r/a"], a);
  assert.deepEqual(members?.entries, [b, a]);
  assert.deepEqual(members?.missing, ["r/t", "r/gone"]);
  assert.equal(membersOf([a, b], ["r/b", "r/c"], a), undefined);
  assert.equal(membersOf([a, b], undefined, a), undefined);
});

test("keys are in natural order", () => {
  assert.deepEqual(inNaturalOrder(["w10/a", "w2/a", "w1/a"]), ["w1/a", "w2/a", "w10/a"]);
});

test("a name in the response identifies a recording, also in the logdir itself", () => {
  const [top, below] = [entry(".", "a"), entry("r/s", "a")];
  assert.equal(entryNamed("a", [below, top]), top);
  assert.equal(entryNamed("r/s/a", [below, top]), below);
  assert.equal(entryNamed("r/s/b", [below, top]), undefined);
});

test("values are placed linearly, else logarithmically, else at equal distances", () => {
  assert.deepEqual(placeValues([0, 2, 4]), { kind: "linear", at: [0, 0.5, 1] });
  const { kind, at } = placeValues([1, 2, 4, 8, 64]);
  assert.equal(kind, "logarithmic");
  assert.ok(Math.abs(at[1]! - 1 / 6) < 1e-12);
  assert.deepEqual(placeValues([0, 1, 64]), { kind: "even", at: [0, 0.5, 1] }, "zero has no logarithm");
  assert.equal(placeValues([1, Number.NaN, 3]).kind, "even", "a number for Python but not for JavaScript");
  assert.deepEqual(placeValues([4]).at, [0.5]);
});

test("ticks are round and reach the highest value", () => {
  assert.deepEqual(ticks(43e6, 5), [0, 10e6, 20e6, 30e6, 40e6]);
  assert.deepEqual(ticks(1000, 5), [0, 200, 400, 600, 800, 1000]);
  assert.deepEqual(ticks(0, 5), [0]);
  assert.deepEqual(ticks(Number.NaN, 5), [0]);
});

test("useful device work is below lost time, and together they are the total", () => {
  const [compute, input, ...none] = areas(POINTS);
  assert.deepEqual([compute?.regime, input?.regime, none], ["compute", "input", []]);
  assert.deepEqual(compute?.low, [0, 0, 0]);
  assert.deepEqual(input?.low, [10e6, 10e6, 10e6]);
  assert.deepEqual(input?.high, POINTS.map(({ ns }) => ns));
  assert.ok(input?.inLegend);
  assert.deepEqual(partsOf(POINTS[2]!).map(({ ns }) => ns), [1e6, 0, 10e6]);
});

test("a tiny regime is drawn without a legend entry", () => {
  const crumbs = [point("1", { input: 1, compute: 100 }), point("2", { input: 1, compute: 90 })];
  assert.deepEqual(areas(crumbs).map(({ regime, inLegend }) => [regime, inLegend]), [["compute", true], ["input", false]]);
});

test("a regime has its title, else its identifier", () => {
  assert.equal(regimeTitle(POINTS, "compute"), "the compute");
  assert.equal(regimeTitle(POINTS, "other"), "other");
});

test("the regression point is found among the points", () => {
  const regression_point = { since: "w2/x", last_good: "w1/x", regime: "input", slowdown: 1.3, because: "" };
  assert.equal(regressionPointOf(series({ kind: "history", regression_point })), POINTS[1]);
});

test("each kind has its title", () => {
  assert.equal(seriesTitle(series()), "Time per step by workers");
  assert.match(seriesTitle(series({ kind: "settings", varies: "device" })), /by device, longest first/);
  assert.match(seriesTitle(series({ kind: "history", varies: "run" })), /in the given order/);
  assert.match(seriesTitle(series({ kind: "apart", varies: "run" })), /not comparable/);
  assert.deepEqual([pointHeading(series()), pointHeading(series({ kind: "history" }))], ["Workers", "Run"]);
});

test("the range of a time is its interval, or the range over several runs, or unknown for one step", () => {
  assert.equal(range(POINTS[0]!), "39.0\u00a0ms to 41.0\u00a0ms");
  assert.match(range(POINTS[2]!), / over 2 runs$/);
  assert.equal(range(point("1", { input: 1 }, { steps: 1 })), "one step: unknown");
  assert.deepEqual(POINTS.map(relativeSpeed), ["", "2.00×", "3.60×"]);
});

test("a series is part of the state, and an equal one changes nothing", () => {
  const state = reduce(START, { type: "series", keys: ["a", "b"] });
  assert.deepEqual(state.series, ["a", "b"]);
  assert.equal(reduce(state, { type: "series", keys: ["a", "b"] }), state);
  assert.notEqual(reduce(state, { type: "series", keys: ["b", "a"] }), state);
  assert.ok(!("series" in reduce(state, { type: "series", keys: undefined })));
  assert.equal(reduce(START, { type: "series", keys: undefined }), START);
});
