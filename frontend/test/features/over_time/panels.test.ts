import assert from "node:assert/strict";
import { test } from "node:test";
import { ceiling, devicesOf, extent, panelsOf, summary, throttling } from "../../../src/features/over_time/panels";
import type { Series, TelemetryAnswer } from "../../../src/shared/report";

const S = 1e9;
const series = (name: string, values: readonly number[], device = "GPU-1"): Series => ({ name, device, unix_ns: values.map((_, at) => (100 + at) * S), values });

function answer(fields: Partial<TelemetryAnswer> = {}): TelemetryAnswer {
  return { id: "x", live: true, series: [], bands: [], notes: [], lost_packets: 0, dropped: [], devices: [], ...fields };
}

test("only panels with samples are shown, for each device its own and those of the host", () => {
  const both = answer({ series: [series("power", [1, 2]), series("power", [5, 6], "GPU-2"), series("cpu_busy_cores", [3], "host")] });
  assert.deepEqual(devicesOf(both), ["GPU-1", "GPU-2"]);
  assert.deepEqual(panelsOf(both, "GPU-2").map(({ id, lines }) => [id, lines[0]!.values]), [["power", [5, 6]], ["cpu", [3]]]);
  assert.deepEqual(panelsOf(answer(), ""), []);
});

test("unknown values of a step are gaps, not zeros", () => {
  const steps = { number: [0, 1], end_unix_ns: [100 * S, 101 * S], wall_ns: [5, 6], columns: [{ name: "loader_wait", values: ["NaN", 2] as unknown as number[] }], steps: [] };
  const [panel] = panelsOf(answer({ steps }), "");
  assert.deepEqual(panel!.lines.map(({ name, values }) => [name, values]), [["wall", [5, 6]], ["loader_wait", [null, 2]]]);
});

test("the clocks were throttled while a counter of throttled time grows", () => {
  const found = throttling([series("power_capped_total", [0, 0, 3, 7, 7, 7, 8])], "GPU-1");
  assert.deepEqual(found.map(({ from, to, key }) => [from, to, key]), [[101, 103, "power"], [105, 106, "power"]]);
});

test("a summary is of the visible range", () => {
  const [panel] = panelsOf(answer({ series: [series("power", [1, 2, 30])] }), "GPU-1");
  assert.deepEqual(summary(panel!.lines[0]!, 100, 101), { now: 2, mean: 1.5, max: 2 });
  assert.equal(summary(panel!.lines[0]!, 0, 1), undefined);
  assert.deepEqual(extent([panel!]), [100, 102]);
});

test("without such a counter the clock event reasons are used, separately for power and temperature", () => {
  const found = throttling([series("clock_event_reasons", [0, 0x04, 0x04, 0x40, 0x01])], "GPU-1");
  assert.deepEqual(found.map(({ from, to, key }) => [from, to, key]), [[100, 102, "power"], [102, 103, "heat"]]);
});

test("a few outliers are cut off, and the chart says so", () => {
  const [panel] = panelsOf(answer({ series: [series("power", [2_000, ...Array.from({ length: 99 }, () => 100)])] }), "GPU-1");
  const { top, cut } = ceiling(panel!.lines, 0, 1_000);
  assert.ok(cut && top > 100 && top < 300);
  const later = ceiling(panel!.lines, 101, 1_000);
  assert.ok(!later.cut && later.top > 100 && later.top < 110);
  assert.ok(!ceiling(panelsOf(answer({ series: [series("power", [100, 200, 100, 200])] }), "GPU-1")[0]!.lines, 0, 1_000).cut);
  assert.deepEqual(ceiling([], 0, 1), { top: 1.08, cut: false });
});
