import assert from "node:assert/strict";
import { test } from "node:test";
import { APPENDED, countUpTo, lastOf, longestOf, merged } from "../../../src/features/over_time/merge";
import type { Series, StepRows, TelemetryAnswer } from "../../../src/shared/report";

const series = (name: string, times: readonly number[], values: readonly number[] = times): Series => ({ name, device: "GPU-1", unix_ns: times, values });

function answer(of: readonly Series[], fields: Partial<TelemetryAnswer> = {}): TelemetryAnswer {
  return { id: "x", live: true, series: of, bands: [], notes: [], lost_packets: 0, dropped: [], devices: [], ...fields };
}

const steps = (times: readonly number[], ...names: readonly string[]): StepRows => ({
  number: times, end_unix_ns: times, wall_ns: times, columns: names.map((name) => ({ name, values: times.map((time) => time * 10) })), steps: [],
});

test("new samples follow the loaded ones without duplicates", () => {
  const loaded = answer([series("power", [1, 2, 3]), series("slow", [1])], { notes: [] });
  const part = answer([series("power", [2, 3, 4, 5]), series("slow", [1, 4]), series("new", [5])], { lost_packets: 2 });
  const whole = merged(loaded, part, APPENDED);
  assert.deepEqual(whole.series.map(({ name, unix_ns }) => [name, unix_ns]), [["new", [5]], ["power", [1, 2, 3, 4, 5]], ["slow", [1, 4]]]);
  assert.equal(whole.lost_packets, 2);
  assert.deepEqual(loaded.series[0]!.unix_ns, [1, 2, 3], "the input is not modified");
});

test("a range in detail replaces only the downsampled samples of that range", () => {
  const loaded = answer([series("power", [10, 20, 30, 40])]);
  const part = answer([series("power", [15, 18, 20, 25, 30], [1, 2, 3, 4, 5])]);
  const [power] = merged(loaded, part, { from: 10, to: 30 }).series;
  assert.deepEqual(power!.unix_ns, [10, 15, 18, 20, 25, 30, 40]);
  assert.deepEqual(power!.values, [10, 1, 2, 3, 4, 5, 40]);
});

test("step columns stay aligned; a column that a response does not contain is unknown there", () => {
  const whole = merged(answer([], { steps: steps([1, 2], "loader_wait") }), answer([], { steps: steps([2, 3], "device_busy") }), APPENDED);
  assert.deepEqual(whole.steps?.number, [1, 2, 3]);
  assert.deepEqual(whole.steps?.columns, [{ name: "loader_wait", values: [10, 20, null] }, { name: "device_busy", values: [null, null, 30] }]);
});

test("without new samples every column stays the same object", () => {
  const loaded = answer([series("power", [1, 2])]);
  assert.equal(merged(loaded, answer([series("power", [2])]), APPENDED).series[0]!.values, loaded.series[0]!.values);
});

test("times are found by binary search", () => {
  assert.deepEqual([0, 1, 1.5, 3, 9].map((time) => countUpTo([1, 2, 3], time)), [0, 1, 1, 3, 3]);
  assert.equal(lastOf(answer([series("a", [1, 7]), series("b", [])], { steps: steps([3]) })), 7);
  assert.equal(lastOf(answer([])), undefined);
  assert.equal(longestOf(answer([series("a", [1, 7])], { steps: steps([1, 2, 3]) })), 3);
});
