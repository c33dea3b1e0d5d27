import assert from "node:assert/strict";
import { test } from "node:test";
import { axes, path } from "../../../src/features/roofline/axes";

const point = { name: "mm", shapes: "", precision: "bf16 tensor", intensity: 60, flops_per_s: 5e13, total_ns: 1, share: 0.1, calls: 1 };
const roofline = { problem: "", fix: "", bandwidth: 3e12, basis: "", roofs: [{ precision: "bf16 tensor", flops_per_s: 8e14 }], points: [point] };

test("the axes hold every point and the ridge, in whole powers of ten", () => {
  const { x, y, left, right, top, bottom, xTicks, yTicks } = axes(roofline, 800, 400);
  assert.ok(x(60) > left && x(60) < right && y(5e13) > top && y(5e13) < bottom);
  assert.deepEqual([xTicks, yTicks], [[10, 100, 1_000], [1e13, 1e14, 1e15, 1e16].slice(0, yTicks.length)]);
  assert.ok(x(100) - x(10) === x(1_000) - x(100));
});

test("the roof rises with the bandwidth and is level from the ridge on", () => {
  const frame = axes(roofline, 800, 400);
  const [, ridge] = /L([\d.]+) ([\d.]+)H/.exec(path(frame, 3e12, 8e14)) ?? [];
  assert.ok(Math.abs(Number(ridge) - frame.x(8e14 / 3e12)) < 1e-6);
});
