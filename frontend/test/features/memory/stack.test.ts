import assert from "node:assert/strict";
import { test } from "node:test";
import { grouped, groupings, outline, stacked } from "../../../src/features/memory/stack";
import type { MemorySite } from "../../../src/shared/report";

const site = (fields: Partial<MemorySite>): MemorySite => ({ kind: "activations", bytes: 1, blocks: 1, operator: "", module: "", file: "", line: 0, function: "", ...fields });

test("series are stacked in their order", () => {
  const areas = stacked({
    times_ns: [0, 10, 20],
    series: [
      { kind: "parameters", title: "Parameters", bytes: [4, 4, 4] },
      { kind: "activations", title: "Activations", bytes: [0, 6, 2] },
    ],
    peak: 1,
  });
  assert.deepEqual(areas.map(({ low, high }) => [low, high]), [[[0, 0, 0], [4, 4, 4]], [[4, 4, 4], [4, 10, 6]]]);
});

test("the outline keeps a value until the next time", () => {
  const area = { kind: "a", title: "A", low: [0, 0], high: [2, 5] };
  assert.equal(outline(area, [10, 30], (value) => 100 - value), "M10 98H30V95V100H30V100Z");
  assert.equal(outline(area, [], (value) => value), "");
});

test("places are grouped by what was recorded", () => {
  const sites = [
    site({ bytes: 5, module: "Linear_0", file: "train.py", line: 4, function: "step" }),
    site({ bytes: 7, module: "Linear_1", file: "train.py", line: 4, function: "step", kind: "gradients" }),
    site({ bytes: 1 }),
  ];
  assert.deepEqual(grouped(sites, "line").map(({ name, bytes, kinds }) => [name, bytes, kinds]), [
    ["train.py:4 step", 12, ["activations", "gradients"]],
    ["not recorded", 1, ["activations"]],
  ]);
  assert.deepEqual(grouped(sites, "module").map(({ name }) => name), ["Linear_1", "Linear_0", "not recorded"]);
  assert.deepEqual(groupings(sites), ["place", "module", "line"]);
  assert.deepEqual(groupings([site({})]), []);
});
