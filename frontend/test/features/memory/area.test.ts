import assert from "node:assert/strict";
import { test } from "node:test";
import { rectangles } from "../../../src/features/memory/area";
import type { MemorySite } from "../../../src/shared/report";

const site = (kind: string, size: number): MemorySite => ({ kind, bytes: size, blocks: 1, operator: "", module: "", file: "a.py", line: size, function: "f", path: [], others: 0 });

test("areas are in proportion to the bytes, and those of a category are next to each other", () => {
  const sites = [site("parameters", 4000), site("activations", 3000), site("parameters", 2000), site("activations", 1000)];
  const placed = rectangles(sites, 1000, 400);
  for (const { x0, x1, y0, y1, value } of placed) {
    assert.ok(Math.abs(((x1 - x0) * (y1 - y0)) / 400_000 - (value ?? 0) / 10_000) < 0.01);
  }
  assert.deepEqual(placed.map(({ data }) => data.kind), ["parameters", "parameters", "activations", "activations"]);
});

test("no places make no rectangles with an area", () => {
  assert.ok(rectangles([], 1000, 400).every(({ x0, x1, data }) => !data.site || x1 > x0));
});
