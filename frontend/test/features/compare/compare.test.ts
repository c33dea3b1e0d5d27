import assert from "node:assert/strict";
import { test } from "node:test";
import { reduce, START } from "../../../src/app/state";
import { baselineOf, candidates, MAX_CANDIDATES } from "../../../src/features/compare/candidates";
import { expectedRows } from "../../../src/features/compare/expected_rows";
import { outcome, testNote } from "../../../src/features/compare/summary";
import type { Comparison, Expected, Finding, RegimeDelta } from "../../../src/shared/report";
import { causeTitle } from "../../../src/shared/text/causes";
import { change, factor, signedShare } from "../../../src/shared/text/format";
import { splitHeadline } from "../../../src/shared/text/names";
import { waterfall } from "../../../src/shared/widgets/waterfall";
import { entry, report } from "../../recordings";

function delta(regime: string, a_ns: number, b_ns: number): RegimeDelta {
  return { regime, title: `the ${regime}`, a_ns, b_ns, delta_ns: b_ns - a_ns };
}

const ROWS = [delta("input", 60e6, 10e6), delta("sync", 0, 0), delta("launch", 10e6, 30e6), delta("compute", 30e6, 30e6)];
const EXPECTED: Expected = {
  speedup: 1.5, low: 1.2, high: 1.9, kernels_speedup: 3, b_ns: 66e6, basis: "replay", assumptions: ["the host is the same"],
  by_regime: [
    { regime: "input", ratio: 1, because: "the host", expected_ns: 60e6 },
    { regime: "sync", ratio: 1, because: "the host", expected_ns: 0 },
    { regime: "compute", ratio: 5, because: "FLOPS", expected_ns: 6e6 },
  ],
  remainder: [], shortfall: [{ cause: "slower_host", share: 0.2, because: "dispatching takes longer", regime: "launch" }, { cause: "unexplained", share: -0.01, because: "", regime: "unexplained" }],
};

function comparison(fields: Partial<Comparison> = {}): Comparison {
  return {
    schema: 1, a: "old", b: "new", per: "step", speedup: 100 / 70, noise: 0.02, headline: "B is faster.", by_regime: ROWS, context: [],
    a_ns: 100e6, b_ns: 70e6, significant: true, difference: "faster", mean_speedup: 100 / 70, by_means: false, test: "9 steps against 9.", notes: [], comparable: true, a_steps: 9, b_steps: 9, ...fields,
  };
}

test("each bar starts where the previous one ended, the largest change first, and the last one ends at B", () => {
  const { bars, empty, longest } = waterfall(ROWS, 100e6, 70e6);
  assert.deepEqual(bars.map(({ row }) => row.regime), ["input", "launch", "compute"]);
  assert.deepEqual(bars.map(({ before, after }) => [before, after]), [[100e6, 50e6], [50e6, 70e6], [70e6, 70e6]]);
  assert.deepEqual(empty.map(({ regime }) => regime), ["sync"]);
  assert.equal(longest, 100e6);
});

test("rounding errors are no bars", () => {
  assert.deepEqual(waterfall([delta("input", 0, 1e-9), delta("compute", 100, 40)], 100, 40).empty.map(({ regime }) => regime), ["input"]);
});

test("the scale includes running totals beyond A and B", () => {
  const { longest } = waterfall([delta("input", 0, 90), delta("compute", 100, 40)], 100, 130);
  assert.equal(longest, 190);
  assert.equal(waterfall([], 0, 0).longest, 1, "never 0, because it is a divisor");
});

test("changes have a sign, and factors three digits", () => {
  assert.equal(change(-3e6), "−3.00\u00a0ms");
  assert.equal(change(12e6), "+12.0\u00a0ms");
  assert.equal(change(0), "0\u00a0ms");
  assert.equal(change(-5e-9), "0\u00a0ms", "a rounding error is no change");
  assert.equal(signedShare(-0.031), "−3.1\u00a0%");
  assert.deepEqual([0.0015, 0.5, 1.426, 67.31, 651.9, 12345].map(factor), ["0.0015×", "0.50×", "1.43×", "67.3×", "652×", "12300×"]);
  assert.equal(factor(Number.NaN), "–");
});

test("the result is faster, slower, within noise, or unknown", () => {
  assert.deepEqual([outcome(comparison()).text, outcome(comparison()).tone], ["1.43× as fast", "good"]);
  assert.deepEqual([outcome(comparison({ speedup: 0.5 })).text, outcome(comparison({ speedup: 0.5 })).tone], ["A is 2.00× as fast", "bad"]);
  assert.equal(outcome(comparison({ significant: false })).text, "No difference beyond noise");
  assert.equal(outcome(comparison({ significant: false, speedup: 1, by_means: true, mean_speedup: 0.5 })).text, "A is 2.00× as fast");
  assert.equal(outcome(comparison({ significant: false, b_steps: 1 })).text, "1.43× as fast, noise unknown");
  assert.equal(outcome(comparison({ comparable: false, speedup: 0 })).text, "Cannot be compared");
  assert.equal(outcome(comparison({ similarity: { share: 0.2, same_work: false, basis: "operators" } })).text, "Different work");
  assert.equal(outcome(comparison({ similarity: { share: 0.9, same_work: true, basis: "operators" } })).text, "1.43× as fast");
  const unprofiled = { a_ns: 80e6, b_ns: 40e6, speedup: 2, noise: 0.01, test: "", a_steps: 64, b_steps: 64 };
  assert.equal(outcome(comparison({ unprofiled: { ...unprofiled, difference: "faster" } })).text, "2.00× as fast");
  assert.equal(outcome(comparison({ unprofiled: { ...unprofiled, difference: "none" } })).text, "No difference beyond noise");
});

test("a headline is split after its first sentence, not within a number", () => {
  assert.deepEqual(splitHeadline("B is 1.32 times as fast: 1.5 ms. All of that is waiting. So."), ["B is 1.32 times as fast: 1.5 ms.", "All of that is waiting. So."]);
  assert.deepEqual(splitHeadline(""), ["", ""]);
});

test("the significance test is not repeated", () => {
  assert.equal(testNote(comparison()), "9 steps against 9.");
  assert.equal(testNote(comparison({ headline: "B is 2 times as fast, but each side has one step only.", test: "Each side has one step only." })), "");
  assert.equal(testNote(comparison({ test: "" })), "");
});

test("expected and measured speedups, without tiny regimes", () => {
  const rows = expectedRows(comparison(), EXPECTED);
  assert.deepEqual(rows.map(({ row, ratio, measured }) => [row.regime, ratio, measured]), [["input", 1, 6], ["compute", 5, 1]]);
});

test("traces of the same folder come first; telemetry beside a trace and the recording itself are left out", () => {
  const mine = entry("resnet/slow", "a");
  const others = [entry("bert", "x"), entry("resnet/fast", "y"), entry("resnet/slow", "z"), entry("resnet/slow", "t", { evidence_source: "telemetry" })];
  const { shown, hidden, total } = candidates([mine, ...others], mine, "");
  assert.deepEqual(shown.map(({ run }) => run), ["resnet/slow", "resnet/fast", "bert"]);
  assert.deepEqual([hidden, total], [0, 3]);
  assert.deepEqual(candidates([mine, ...others], mine, "BERT").shown.map(({ run }) => run), ["bert"]);
});

test("the telemetry of a run without a trace can be compared", () => {
  const alone = { evidence_source: "telemetry" };
  const [mine, other, beside, snapshot] = [entry("a", "t", alone), entry("b", "t", alone), entry("c", "t", alone), entry("d", "s", { evidence_source: "snapshot" })];
  const runs = [mine, other, beside, entry("c", "x"), snapshot];
  assert.deepEqual(candidates(runs, mine, "").shown.flatMap(({ entries }) => entries.map(({ source }) => source)), ["t", "x"]);
  assert.equal(baselineOf(runs, "b/t", mine), other);
  for (const key of ["c/t", "d/s"]) assert.equal(baselineOf(runs, key, mine), undefined, key);
});

test("of thousands some are listed, and the others are counted", () => {
  const mine = entry("r", "a");
  const many = Array.from({ length: 3_000 }, (_, at) => entry(`run${at % 7}`, `${at}`));
  const { shown, hidden, total } = candidates([mine, ...many], mine, "");
  assert.equal(shown.reduce((sum, { entries }) => sum + entries.length, 0), MAX_CANDIDATES);
  assert.deepEqual([hidden, total], [3_000 - MAX_CANDIDATES, 3_000]);
});

test("the baseline of the address is used unless it is gone, the same, or telemetry beside a trace", () => {
  const [mine, other] = [entry("r", "a"), entry("r", "b")];
  const runs = [mine, other, entry("r", "t", { evidence_source: "telemetry" })];
  assert.equal(baselineOf(runs, "r/b", mine), other);
  for (const key of ["r/a", "r/t", "r/nowhere", undefined]) assert.equal(baselineOf(runs, key, mine), undefined, key);
});

test("the baseline is part of the state and can be removed", () => {
  const state = reduce(START, { type: "baseline", key: "r/b" });
  assert.equal(state.baseline, "r/b");
  assert.equal(reduce(state, { type: "baseline", key: "r/b" }), state);
  assert.ok(!("baseline" in reduce(state, { type: "baseline", key: undefined })));
});

test("a cause has the title of its report", () => {
  const finding: Finding = { cause: "no_graph", title: "Each kernel is launched alone", regime: "launch", cost_share: 0.2, evidence: [], where: [] };
  assert.equal(causeTitle("no_graph", undefined, { ...report("a"), findings: [finding] }), "Each kernel is launched alone");
  assert.equal(causeTitle("no_graph"), "No graph");
});
