import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryTrend } from "../../../src/features/over_time/memory_trend";
import type { Line, Panel } from "../../../src/features/over_time/panels";

const SECONDS = 120;
const line = (name: string, value: (second: number) => number): Line => ({
  name,
  title: name,
  unit: "bytes",
  times: Array.from({ length: SECONDS }, (_, second) => second),
  values: Array.from({ length: SECONDS }, (_, second) => value(second)),
});
const panel = (id: string, ...lines: readonly Line[]): Panel => ({ id, title: "", unit: "bytes", lines, beside: [], shades: [] });
const trend = (shown: Panel): string => memoryTrend(shown, 0, SECONDS).join(" ").replace(/\u00a0/g, " ");

test("a device has headroom, and growth says when it is full", () => {
  const growing = panel("memory", line("memory_used", (second) => 1e9 + 1e7 * second), line("memory_total", () => 4e9));
  assert.equal(trend(growing), "Headroom: 1.81 GB. Growing (memory_used): 602 MB per minute; at this rate it is full in 3 min 0 s.");
});

test("a steady run and one that rises once do not grow", () => {
  for (const value of [() => 1e9, (second: number) => (second < 60 ? 1e9 : 2e9), (second: number) => 1e9 + 1e8 * (second % 10)]) {
    assert.equal(trend(panel("memory", line("memory_used", value), line("memory_total", () => 4e9))).includes("Growing"), false);
  }
});

test("the host's headroom is what was available at least", () => {
  assert.equal(trend({ ...panel("host_memory", line("process_memory", () => 1e9)), beside: [line("host_memory_available", (second) => 5e9 - second * 1e6)] }), "Headroom: 4.88 GB.");
});

test("other panels have none, nor a few readings", () => {
  assert.equal(trend(panel("cpu", line("memory_used", (second) => 1e9 * second))), "");
  assert.deepEqual(memoryTrend(panel("memory", line("memory_used", (second) => 1e9 * (second + 1))), 0, 10), []);
});
