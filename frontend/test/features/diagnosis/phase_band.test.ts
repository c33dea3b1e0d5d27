import assert from "node:assert/strict";
import { test } from "node:test";
import { costliest, segmentsOf } from "../../../src/features/diagnosis/phase_band";
import type { Phase } from "../../../src/shared/report";

const phaseOf = (begin: number, end: number, severity = "none", share = 0.5): Phase => ({ begin_ns: begin, end_ns: end, regime: "input", share, severity, title: "Waiting for data" });

test("a band has gaps without data and is as long as the run", () => {
  const segments = segmentsOf([phaseOf(10, 30), phaseOf(30, 40), phaseOf(60, 100)]);
  assert.deepEqual(segments.map(({ length, phase }) => [length, phase !== undefined]), [[20, true], [10, true], [20, false], [40, true]]);
  assert.deepEqual(segmentsOf([]), []);
});

test("overlapping phases do not make the band longer", () => {
  assert.deepEqual(segmentsOf([phaseOf(0, 50), phaseOf(40, 60), phaseOf(45, 55)]).map(({ length }) => length), [50, 10]);
});

test("of many phases, those with the most lost time are listed in order of time", () => {
  const many = [phaseOf(0, 1_000), phaseOf(1_000, 1_010, "critical"), phaseOf(1_010, 2_000), phaseOf(2_000, 2_100, "warning", 0.2), phaseOf(2_100, 2_101, "critical")];
  assert.deepEqual(costliest(many, 2).map(({ begin_ns }) => begin_ns), [1_000, 2_000]);
  assert.equal(costliest(many, 5), many);
});
