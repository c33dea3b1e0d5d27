import assert from "node:assert/strict";
import { test } from "node:test";
import { reduce, START } from "../../../../src/app/state";
import { AS_RECORDED, conditionsText, parseConditions } from "../../../../src/features/compare/what_if/conditions";
import { cost, interval, intervalOfTime, predictionBadge, predictionBasis } from "../../../../src/features/compare/what_if/summary";
import type { Prediction, WhatIf } from "../../../../src/shared/report";

const AFTER: Prediction = { step_ns: 25e6, speedup: 2, low: 1.6, high: 2.5 };
const ROWS = [["input", 40e6, 15e6], ["compute", 10e6, 10e6]] as const;

function prediction(fields: Partial<WhatIf> = {}): WhatIf {
  return {
    schema: 1, run: "r/x", changes: ["it had 4 workers"], step_ns: 50e6, after: AFTER, regime: "compute", headline: "If it had 4 workers.", basis: "replay", per: "step",
    by_regime: ROWS.map(([regime, a_ns, b_ns]) => ({ regime, title: `the ${regime}`, a_ns, b_ns, delta_ns: b_ns - a_ns })),
    fix_first: [{ cause: "no_graph", title: "Each kernel is launched alone", share: 0.3 }], assumptions: ["the host is the same"], notes: [], ...fields,
  };
}

const after = (low: number, speedup: number, high: number): WhatIf => prediction({ after: { ...AFTER, low, speedup, high } });

test("only changed conditions are written, in a fixed order", () => {
  const conditions = { ...AS_RECORDED, workers: "4", device: " NVIDIA H200 " };
  assert.equal(conditionsText(conditions), "device=NVIDIA+H200&workers=4");
  assert.deepEqual(parseConditions(conditionsText(conditions)), { ...conditions, device: "NVIDIA H200" });
  assert.equal(conditionsText(AS_RECORDED), "");
});

test("invalid conditions in the address are ignored", () => {
  const read = parseConditions("workers=many&batch=-4&device=" + "x".repeat(500) + "&color=red&precision=bf16");
  assert.deepEqual(read, { ...AS_RECORDED, device: "x".repeat(120), precision: "bf16" });
  assert.deepEqual(parseConditions("%E0%A4%A"), AS_RECORDED);
  assert.deepEqual(parseConditions(undefined), AS_RECORDED);
  assert.equal(parseConditions("device=a%26b%3Dc").device, "a&b=c");
});

test("a prediction is faster only if the whole interval is", () => {
  assert.deepEqual([predictionBadge(after(1.6, 2, 2.5)).text, predictionBadge(after(1.6, 2, 2.5)).tone], ["2.00× as fast", "good"]);
  assert.deepEqual([predictionBadge(after(0.4, 0.5, 0.8)).text, predictionBadge(after(0.4, 0.5, 0.8)).tone], ["Would take 2.00× as long", "bad"]);
  assert.equal(predictionBadge(after(0.9, 1.1, 1.2)).tone, "plain");
  const { after: _, ...none } = prediction();
  assert.equal(predictionBadge(none).text, "Cannot be predicted");
});

test("the interval is shown as factors and as times", () => {
  assert.equal(interval(AFTER), "between 1.60× and 2.50×");
  assert.equal(intervalOfTime(prediction(), AFTER), "between 20.0\u00a0ms and 31.3\u00a0ms");
  assert.equal(cost(prediction().fix_first[0]!, "sample"), "30\u00a0% of the sample after the change");
  assert.notEqual(predictionBasis("replay"), predictionBasis("account"));
});

test("conditions are part of the state and stay when another recording is chosen", () => {
  const state = reduce(START, { type: "conditions", text: "workers=4" });
  assert.equal(reduce(state, { type: "conditions", text: "workers=4" }), state);
  assert.equal(reduce(state, { type: "choose", key: "r/b" }).conditions, "workers=4");
  assert.ok(!("conditions" in reduce(state, { type: "conditions", text: undefined })));
});
