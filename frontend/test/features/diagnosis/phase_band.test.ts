import assert from "node:assert/strict";
import { test } from "node:test";
import type { Phase } from "../../../src/shared/report";
import { listed, partsOf } from "../../../src/features/diagnosis/phase_band";

const stretch = (begin: number, end: number, severity = "none", share = 0.5): Phase => ({ begin_ns: begin, end_ns: end, regime: "input", share, severity, title: "Waiting for data" });

test("a band has a gap where nothing is known, and is as long as the run", () => {
  const parts = partsOf([stretch(10, 30), stretch(30, 40), stretch(60, 100)]);
  assert.deepEqual(parts.map(({ length, stretch: one }) => [length, one !== undefined]), [[20, true], [10, true], [20, false], [40, true]]);
  assert.deepEqual(partsOf([]), []);
});

test("stretches that reach into one another do not make the band longer", () => {
  assert.deepEqual(partsOf([stretch(0, 50), stretch(40, 60), stretch(45, 55)]).map(({ length }) => length), [50, 10]);
});

test("of many stretches those are listed that lost most, in order of time", () => {
  const many = [stretch(0, 1_000), stretch(1_000, 1_010, "critical"), stretch(1_010, 2_000), stretch(2_000, 2_100, "warning", 0.2), stretch(2_100, 2_101, "critical")];
  assert.deepEqual(listed(many, 2).map(({ begin_ns }) => begin_ns), [1_000, 2_000]);
  assert.equal(listed(many, 5), many);
});
