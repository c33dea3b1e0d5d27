import assert from "node:assert/strict";
import { test } from "node:test";
import type { Prediction, WhatIf } from "../../../src/shared/report";
import { reduce, START } from "../../../src/app/state";
import { AS_IT_IS, supposedIn, supposedText } from "../../../src/features/what_if/conditions";
import { whatIfMarkdown } from "../../../src/features/what_if/markdown";
import { cost, foretold, interval, intervalOfTime, outlook } from "../../../src/features/what_if/summary";

const AFTER: Prediction = { step_ns: 25e6, speedup: 2, low: 1.6, high: 2.5 };
const ROWS = [["input", 40e6, 15e6], ["compute", 10e6, 10e6]] as const;

function told(fields: Partial<WhatIf> = {}): WhatIf {
  return {
    schema: 1, run: "r/x", changes: ["it had 4 workers"], step_ns: 50e6, after: AFTER, regime: "compute", headline: "If it had 4 workers.", basis: "replay", per: "step",
    by_regime: ROWS.map(([regime, a_ns, b_ns]) => ({ regime, title: `the ${regime}`, a_ns, b_ns, delta_ns: b_ns - a_ns })),
    fix_first: [{ cause: "no_graph", title: "Each kernel is launched alone", share: 0.3 }], assumptions: ["the host is the same"], notes: [], ...fields,
  };
}

const after = (low: number, speedup: number, high: number): WhatIf => told({ after: { ...AFTER, low, speedup, high } });

test("what is supposed is spelt in one order, and only what is changed", () => {
  const supposed = { ...AS_IT_IS, workers: "4", device: " NVIDIA H200 " };
  assert.equal(supposedText(supposed), "device=NVIDIA+H200&workers=4");
  assert.deepEqual(supposedIn(supposedText(supposed)), { ...supposed, device: "NVIDIA H200" });
  assert.equal(supposedText(AS_IT_IS), "");
});

test("an address may hold anything: counts are counts, names are short, the rest is left out", () => {
  const read = supposedIn("workers=many&batch=-4&device=" + "x".repeat(500) + "&color=red&precision=bf16");
  assert.deepEqual(read, { ...AS_IT_IS, device: "x".repeat(120), precision: "bf16" });
  assert.deepEqual(supposedIn("%E0%A4%A"), AS_IT_IS);
  assert.deepEqual(supposedIn(undefined), AS_IT_IS);
  assert.equal(supposedIn("device=a%26b%3Dc").device, "a&b=c");
});

test("faster is said only where the whole interval is", () => {
  assert.deepEqual([outlook(after(1.6, 2, 2.5)).text, outlook(after(1.6, 2, 2.5)).tone], ["2.00× as fast", "good"]);
  assert.deepEqual([outlook(after(0.4, 0.5, 0.8)).text, outlook(after(0.4, 0.5, 0.8)).tone], ["Would take 2.00× as long", "bad"]);
  assert.equal(outlook(after(0.9, 1.1, 1.2)).tone, "plain");
  const { after: _, ...none } = told();
  assert.equal(outlook(none).text, "Cannot be predicted");
});

test("the interval stands as factors and as times", () => {
  assert.equal(interval(AFTER), "between 1.60× and 2.50×");
  assert.equal(intervalOfTime(told(), AFTER), "between 20.0\u00a0ms and 31.3\u00a0ms");
  assert.equal(cost(told().fix_first[0]!, "sample"), "30\u00a0% of the sample then");
  assert.notEqual(foretold("replay"), foretold("account"));
});

test("Markdown holds the same, and no name is markup", () => {
  const said = whatIfMarkdown(told({ run: "<img src=x>", notes: ["[a](b)"] }));
  assert.ok(said.includes("\\<img src=x\\>"));
  assert.ok(said.includes("**2.00×**, between 1.60× and 2.50×: a step of 50.0 ms now, of 25.0 ms then"));
  assert.ok(said.includes("| the input | 40.0 ms | 15.0 ms | −25.0 ms |"));
  assert.ok(said.includes("- Each kernel is launched alone: 30 % of the step then"));
  assert.ok(said.includes("- the host is the same"));
  assert.ok(said.includes("- \\[a\\](b)"));
  assert.ok(!said.includes("\u00a0"));
});

test("where nothing can be predicted, Markdown has the sentence and no table", () => {
  const { after: _, ...rest } = told({ headline: "Nothing can be predicted: the work ran on the CPU.", fix_first: [], assumptions: [] });
  assert.equal(whatIfMarkdown(rest), "## Nothing can be predicted: the work ran on the CPU.\n\nr/x\n");
});

test("what is supposed is part of the state, and stays when another recording is chosen", () => {
  const state = reduce(START, { type: "supposed", text: "workers=4" });
  assert.equal(reduce(state, { type: "supposed", text: "workers=4" }), state);
  assert.equal(reduce(state, { type: "choose", key: "r/b", remembered: undefined }).supposed, "workers=4");
  assert.ok(!("supposed" in reduce(state, { type: "supposed", text: undefined })));
});
