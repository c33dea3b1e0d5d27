import assert from "node:assert/strict";
import { test } from "node:test";
import { growthText } from "../../../src/features/memory/growth";
import { outline, stacked } from "../../../src/features/memory/stack";

test("series are stacked in their order", () => {
  const areas = stacked({
    times_ns: [0, 10, 20],
    series: [
      { kind: "parameters", title: "Parameters", bytes: [4, 4, 4] },
      { kind: "activations", title: "Activations", bytes: [0, 6, 2] },
    ],
    peak: 1,
    step_ns: 25,
  });
  assert.deepEqual(areas.map(({ low, high }) => [low, high]), [[[0, 0, 0], [4, 4, 4]], [[4, 4, 4], [4, 10, 6]]]);
});

test("the outline keeps a value until the next time, and the last one to the end", () => {
  const area = { kind: "a", title: "A", low: [0, 1], high: [2, 5] };
  assert.equal(outline(area, [10, 30], (value) => 100 - value, 50), "M10 98H30V95H50V99H30V100H10Z");
  assert.equal(outline(area, [], (value) => value, 50), "");
});

test("growth is said only if every step rises", () => {
  const text = (...end_bytes: number[]) => growthText({ peak_bytes: end_bytes, end_bytes, steps: 1 });
  assert.match(text(1000, 3000, 5000, 5000), /more memory than the one before: 2\.00\skB per step/);
  assert.equal(text(1000, 1000, 1000, 900), "Each step ends with the same memory.");
  assert.match(text(1000, 3000, 2000, 5000), /1\.00\skB to 3\.00\skB/);
  assert.equal(text(1000, 3000), "");
});
