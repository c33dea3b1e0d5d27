import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, counterpart, LISTED } from "../../../src/features/compare/candidates";
import { comparisonMarkdown } from "../../../src/features/compare/markdown";
import { promisedRows } from "../../../src/features/compare/expected_rows";
import { waterfall } from "../../../src/shared/widgets/waterfall";
import { causeTitle, outcome, parted, testBeside } from "../../../src/features/compare/summary";
import { change, factor, signedShare } from "../../../src/shared/text/format";
import type { Comparison, Expected, Finding, RegimeDelta } from "../../../src/shared/report";
import { reduce, START } from "../../../src/app/state";
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

function told(fields: Partial<Comparison> = {}): Comparison {
  return {
    schema: 1, a: "old", b: "new", per: "step", speedup: 100 / 70, noise: 0.02, headline: "B is faster.", by_regime: ROWS, context: [],
    a_ns: 100e6, b_ns: 70e6, significant: true, test: "9 steps against 9.", notes: [], comparable: true, a_steps: 9, b_steps: 9, ...fields,
  };
}

test("each bar begins where the last one ended, the largest change first, and the last ends at B", () => {
  const { bars, empty, longest } = waterfall(ROWS, 100e6, 70e6);
  assert.deepEqual(bars.map(({ row }) => row.regime), ["input", "launch", "compute"]);
  assert.deepEqual(bars.map(({ before, after }) => [before, after]), [[100e6, 50e6], [50e6, 70e6], [70e6, 70e6]]);
  assert.deepEqual(empty.map(({ regime }) => regime), ["sync"]);
  assert.equal(longest, 100e6);
});

test("what doubles leave over is no bar", () => {
  assert.deepEqual(waterfall([delta("input", 0, 1e-9), delta("compute", 100, 40)], 100, 40).empty.map(({ regime }) => regime), ["input"]);
});

test("what grows first reaches beyond both sides, and the scale holds it", () => {
  const { longest } = waterfall([delta("input", 0, 90), delta("compute", 100, 40)], 100, 130);
  assert.equal(longest, 190);
  assert.equal(waterfall([], 0, 0).longest, 1, "nothing divides by it in vain");
});

test("changes carry their sign, and factors far from one their digits", () => {
  assert.equal(change(-3e6), "−3.00\u00a0ms");
  assert.equal(change(12e6), "+12.0\u00a0ms");
  assert.equal(change(0), "0\u00a0ms");
  assert.equal(change(-5e-9), "0\u00a0ms", "what doubles leave over is no change");
  assert.equal(signedShare(-0.031), "−3.1\u00a0%");
  assert.deepEqual([0.0015, 0.5, 1.426, 67.31, 651.9, 12345].map(factor), ["0.0015×", "0.50×", "1.43×", "67.3×", "652×", "12300×"]);
  assert.equal(factor(Number.NaN), "–");
});

test("the answer is faster, slower, not to be told from noise, or not known", () => {
  assert.deepEqual([outcome(told()).text, outcome(told()).tone], ["1.43× as fast", "good"]);
  assert.deepEqual([outcome(told({ speedup: 0.5 })).text, outcome(told({ speedup: 0.5 })).tone], ["Takes 2.00× as long", "bad"]);
  assert.equal(outcome(told({ significant: false })).text, "No difference beyond noise");
  assert.equal(outcome(told({ significant: false, b_steps: 1 })).text, "1.43× as fast, noise not known");
  assert.equal(outcome(told({ comparable: false, speedup: 0 })).text, "Cannot be compared");
});

test("a headline's first sentence stands out, and a number does not end it", () => {
  assert.deepEqual(parted("B is 1.32 times as fast: 1.5 ms. All of that is waiting. So."), ["B is 1.32 times as fast: 1.5 ms.", "All of that is waiting. So."]);
  assert.deepEqual(parted(""), ["", ""]);
});

test("how it was told is not said twice", () => {
  assert.equal(testBeside(told()), "9 steps against 9.");
  assert.equal(testBeside(told({ headline: "B is 2 times as fast, but each side has one step only.", test: "Each side has one step only." })), "");
  assert.equal(testBeside(told({ test: "" })), "");
});

test("what was promised stands beside what was got, without crumbs", () => {
  const rows = promisedRows(told(), EXPECTED);
  assert.deepEqual(rows.map(({ row, ratio, measured }) => [row.regime, ratio, measured]), [["input", 1, 6], ["compute", 5, 1]]);
});

test("traces of the same folder come first, telemetry and the recording itself never", () => {
  const mine = entry("resnet/slow", "a");
  const others = [entry("bert", "x"), entry("resnet/fast", "y"), entry("resnet/slow", "z"), entry("resnet/slow", "t", { evidence_source: "telemetry" })];
  const { shown, left, all } = candidates([mine, ...others], mine, "");
  assert.deepEqual(shown.map(({ run }) => run), ["resnet/slow", "resnet/fast", "bert"]);
  assert.deepEqual([left, all], [0, 3]);
  assert.deepEqual(candidates([mine, ...others], mine, "BERT").shown.map(({ run }) => run), ["bert"]);
});

test("of thousands some are listed, and the others counted", () => {
  const mine = entry("r", "a");
  const many = Array.from({ length: 3_000 }, (_, at) => entry(`run${at % 7}`, `${at}`));
  const { shown, left, all } = candidates([mine, ...many], mine, "");
  assert.equal(shown.reduce((sum, { entries }) => sum + entries.length, 0), LISTED);
  assert.deepEqual([left, all], [3_000 - LISTED, 3_000]);
});

test("what the address names is compared with, unless it is gone, the same, or no trace", () => {
  const [mine, other] = [entry("r", "a"), entry("r", "b")];
  const runs = [mine, other, entry("r", "t", { evidence_source: "telemetry" })];
  assert.equal(counterpart(runs, "r/b", mine), other);
  for (const against of ["r/a", "r/t", "r/nowhere", undefined]) assert.equal(counterpart(runs, against, mine), undefined, against);
});

test("what is compared with is part of the state, and can be taken back", () => {
  const state = reduce(START, { type: "against", key: "r/b" });
  assert.equal(state.against, "r/b");
  assert.equal(reduce(state, { type: "against", key: "r/b" }), state);
  assert.ok(!("against" in reduce(state, { type: "against", key: undefined })));
});

test("a cause is called what its report calls it", () => {
  const finding: Finding = { cause: "no_graph", title: "Each kernel is launched alone", regime: "launch", cost_share: 0.2, evidence: [] };
  assert.equal(causeTitle("no_graph", undefined, { ...report("a"), findings: [finding] }), "Each kernel is launched alone");
  assert.equal(causeTitle("no_graph"), "No graph");
});

test("Markdown holds the same, and no name is markup", () => {
  const said = comparisonMarkdown(
    told({ a: "<img src=x>", expected: EXPECTED, causes: { gained: ["no_graph"], lost: [] }, context: [{ key: "device", title: "device", a: "A|1", b: "B*" }], notes: ["[a](b)"] }),
    undefined,
    report("b"),
  );
  assert.ok(said.includes("A: \\<img src=x\\>"));
  assert.ok(said.includes("| the input | 60.0 ms | 10.0 ms | −50.0 ms |"));
  assert.ok(said.includes("| **Whole** | 100 ms | 70.0 ms | −30.0 ms |"));
  assert.ok(said.includes("Expected 1.50× (1.20× to 1.90×), measured 1.43×; the kernels alone 3.00×."));
  assert.ok(said.includes("- +20.0 % Slower host: dispatching takes longer"));
  assert.ok(said.includes("- B has and A has not: No graph"));
  assert.ok(said.includes("| device | A\\|1 | B\\* |"));
  assert.ok(said.includes("- \\[a\\](b)"));
  assert.ok(!said.includes("\u00a0"));
});

test("of what cannot be compared, Markdown says why and holds no table", () => {
  const said = comparisonMarkdown(told({ comparable: false, headline: "No comparison: B is incomplete.", notes: ["B is incomplete"] }), undefined, undefined);
  assert.ok(said.includes("- B is incomplete"));
  assert.ok(!said.includes("|"));
});
