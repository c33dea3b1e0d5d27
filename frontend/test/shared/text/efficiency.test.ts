// The figures of efficiency as text, in the words and with the formulas of the command line.
import assert from "node:assert/strict";
import test from "node:test";
import { boundText, figuresOf, valueText } from "../../../src/shared/text/efficiency";
import type { EfficiencyNote, Headroom } from "../../../src/shared/report";

const note = (field: string, unit: string, because = ""): EfficiencyNote => ({ field, unit, because, basis: because ? "" : "b", title: field, definition: "d" });

test("a figure without a value is not zero", () => {
  const figures = figuresOf({ samples_basis: "", types: [{ dtype: "bf16", share: 1, peak_flops: 9.89e14 }], mfu: 0.413, peak_flops: 9.89e14, notes: [note("mfu", "share"), note("hfu", "share", "no"), note("peak_flops", "flops_per_s")] });
  assert.deepEqual(
    figures.map(({ value }) => value?.replaceAll("\u00a0", " ")),
    ["41 %", undefined, "989 TFLOP/s bf16"],
  );
});

test("values have units", () => {
  assert.equal(valueText(13145.2, "per_second"), "13,145/s");
  assert.equal(valueText(0.3456, "joules"), "0.346\u00a0J");
});

test("bounds are named as bounds", () => {
  const item: Headroom = { kind: "layout", title: "", summary: "", evidence: [] };
  assert.equal(boundText({ ...item, share: 0.08 }), "at most 8.0\u00a0% of the time");
  assert.equal(boundText(item), "");
});
