import assert from "node:assert/strict";
import { test } from "node:test";
import type { Evidence, Speedup } from "../../../src/shared/report";
import * as format from "../../../src/shared/text/format";
import * as names from "../../../src/shared/text/names";

/** Numbers and units are kept together by a no-break space; the tests read better with a plain one. */
const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("a duration has three digits and the largest unit that fits", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, "0 ms"],
    [1, "1.00 ns"],
    [850, "850 ns"],
    [12_345, "12.3 µs"],
    [53_000_000, "53.0 ms"],
    [1_240_000_000, "1.24 s"],
    [125_000_000_000, "2 min 5 s"],
  ];
  for (const [ns, text] of cases) assert.equal(plain(format.duration(ns)), text);
});

test("a round duration has no trailing zeros", () => {
  const cases = [[50e6, "50 ms"], [5e6, "5 ms"], [1.2e9, "1.2 s"], [2.5e6, "2.5 ms"], [200e6, "200 ms"], [120e9, "2 min 0 s"]] as const;
  for (const [ns, text] of cases) assert.equal(plain(format.roundDuration(ns)), text);
});

test("a duration that rounds up to the next unit is written in it", () => {
  assert.equal(plain(format.duration(999_600)), "1.00 ms");
  assert.equal(plain(format.duration(999_400)), "999 µs");
  assert.equal(plain(format.duration(9_996_000)), "10.0 ms");
  assert.equal(plain(format.duration(59_990_000_000)), "60.0 s");
  assert.equal(plain(format.duration(119_700_000_000)), "2 min 0 s");
});

test("unknown values are never written as numbers", () => {
  assert.equal(format.duration(undefined), "–");
  assert.equal(format.share(Number.NaN), "–");
  assert.equal(format.shortShare(undefined), "–");
  assert.equal(format.times(Number.POSITIVE_INFINITY), "–");
});

test("a share in a column always has one decimal", () => {
  assert.equal(plain(format.share(0.41)), "41.0 %");
  assert.equal(plain(format.share(0)), "0.0 %");
  assert.equal(plain(format.share(1)), "100.0 %");
});

test("a share above zero is never shown as zero", () => {
  assert.equal(plain(format.share(0.0004)), "<0.1 %");
  assert.equal(plain(format.shortShare(0.0000001)), "<0.1 %");
});

test("a short share keeps its decimal only where the whole number would mislead", () => {
  assert.equal(plain(format.shortShare(0.414)), "41 %");
  assert.equal(plain(format.shortShare(0.021)), "2.1 %");
  assert.equal(plain(format.shortShare(0.0996)), "10 %");
  assert.equal(plain(format.shortShare(0.996)), "99.6 %");
  assert.equal(plain(format.shortShare(1)), "100 %");
  assert.equal(plain(format.shortShare(0)), "0 %");
});

test("bytes are counted in thousands", () => {
  assert.equal(plain(format.bytes(999)), "999 B");
  assert.equal(plain(format.bytes(61_234)), "61.2 kB");
  assert.equal(plain(format.bytes(5.1e9)), "5.10 GB");
});

const gain = (basis: string, low = 1.3, high = 1.69): Speedup => ({ expected: 1.69, low, high, basis, assumes: "", because: "" });

test("a speedup states its basis", () => {
  assert.deepEqual(format.speedup(gain("replay")), { gain: "1.69×", basis: "simulated on this recording, between 1.30× and 1.69×" });
  assert.equal(format.speedup(gain("replay", 1.69, 1.69)).basis, "simulated on this recording");
  assert.equal(format.speedup(gain("bound")).gain, "up to 1.69×");
  assert.deepEqual(format.speedup(gain("estimate")), { gain: "roughly 1.69×", basis: "from measured changes, 1.30× or more" });
  assert.deepEqual(format.speedup({ ...gain("estimate"), high: 9 }), { gain: "1.30× or more", basis: "from measured changes, which differ widely; measure it" });
});

test("no speedup is shown if none was predicted", () => {
  assert.equal(format.speedup(gain("none")).gain, "not predicted");
  assert.equal(format.speedup(undefined).gain, "not predicted");
});

test("an unknown basis is shown as its identifier", () => {
  assert.deepEqual(format.speedup(gain("measured_twice")), { gain: "1.69×", basis: "measured twice" });
});

const evidence = (fields: Partial<Evidence>): Evidence => ({ label: "", unit: "", text: "", compared_with: "", ...fields });

test("evidence is written in its unit", () => {
  const cases: readonly (readonly [Partial<Evidence>, string])[] = [
    [{ value: 21_730_000, unit: "ns" }, "21.7 ms"],
    [{ value: 0.41, unit: "share" }, "41.0 %"],
    [{ value: 2045, unit: "count" }, "2,045"],
    [{ value: 5.1e9, unit: "bytes_per_s" }, "5.10 GB/s"],
    [{ unit: "text", text: "<b>Loader</b>" }, "<b>Loader</b>"],
    [{ value: 3, unit: "kernels_per_step" }, "3 kernels per step"],
    [{ unit: "ns" }, "–"],
  ];
  for (const [fields, text] of cases) assert.equal(plain(format.evidence(evidence(fields))), text);
});

test("evidence is located relative to the window, or without a window on the recording's clock", () => {
  const item = evidence({ begin_ns: 7.7e15 + 41_200_000, end_ns: 7.7e15 + 44_300_000 });
  assert.equal(plain(format.occurrence(item, 7.7e15)), "41.2 ms into the window, for 3.10 ms");
  assert.equal(plain(format.occurrence(item, undefined)), "at 7,700,000,041,200 µs, for 3.10 ms");
  assert.equal(format.occurrence(evidence({}), 0), "");
});

test("a recording's name loses only its common ending", () => {
  assert.equal(names.sourceName("host_42.1764.pt.trace.json.gz"), "host_42.1764");
  assert.equal(names.sourceName("a.pt.trace.json"), "a");
  assert.equal(names.sourceParts("rank0_42.1795283861864411510.peak.pickle").at, 1795283861864);
  assert.equal(names.sourceName("rank0.json"), "rank0.json");
  assert.equal(names.sourceName(".trace.json"), ".trace.json");
});

/** Recordings of the same run often differ only by a number of 13 or 19 digits in their names. */
test("a recording is named with the time of writing, if its file name contains it", () => {
  const written = new Date(2026, 10, 12, 14, 3, 12).getTime();
  for (const source of [`host_42.${written}000000.pt.trace.json.gz`, `host_42.${written}.pt.trace.json`]) {
    assert.deepEqual(names.sourceParts(source), { name: "host_42", at: written });
    assert.equal(names.sourceName(source), "host_42, 12 Nov 2026, 14:03:12");
  }
  assert.equal(names.sourceName(`events.out.tfevents.${written / 1000}.host.7.0`), "telemetry, 12 Nov 2026, 14:03:12");
  assert.deepEqual(names.sourceParts("host.9795271337621.pt.trace.json"), { name: "host.9795271337621" });
  assert.equal(names.fileStem(`host_42.${written}.pt.trace.json`), `host_42.${written}`);
});

test("a time includes its day, and a second day only if it differs", () => {
  const at = (date: number, hour: number, year = 2026) => new Date(year, 10, date, hour, 3, 12).getTime();
  const now = at(21, 9);
  assert.equal(format.moment(at(12, 14)), "12 Nov 2026, 14:03:12");
  assert.equal(format.momentsBetween(at(12, 14), at(12, 16)), "12 Nov 2026, 14:03:12 to 16:03:12");
  assert.equal(format.momentsBetween(at(12, 14), at(13, 2)), "12 Nov 2026, 14:03:12 to 13 Nov 2026, 02:03:12");
  assert.deepEqual([at(21, 8), at(12, 14), at(12, 14, 2025)].map((one) => format.shortMoment(one, now)), ["08:03", "12 Nov 14:03", "12 Nov 2025"]);
  assert.deepEqual(format.axisTimes([at(12, 14), at(12, 16)]), ["14:03:12", "16:03:12"]);
  assert.deepEqual(format.axisTimes([at(12, 22), at(12, 23), at(13, 0)]), ["22:03:12\n12 Nov 2026", "23:03:12", "00:03:12\n13 Nov 2026"]);
});

test("a gain and its bounds have as many digits as a simulation is accurate to", () => {
  assert.deepEqual([1.244, 1.99, 2, 6.59, 14.7].map((one) => format.times(one)), ["1.24×", "1.99×", "2.0×", "6.6×", "15×"]);
  assert.equal(format.between(1.24, 2.13), "between 1.2× and 2.1×");
  assert.equal(format.between(6.59, 14.7), "between 6.6× and 15×");
  assert.deepEqual(format.simulated(1.5, 1.24, 2.13), { speedup: "1.50×", range: "between 1.2× and 2.1×" });
  assert.deepEqual(format.simulated(3.4, 1.8, 5.7), { speedup: "1.8× to 5.7×", range: "measure it" });
});

test("the logdir itself has a name", () => {
  assert.equal(names.runName("."), "(logdir)");
  assert.equal(names.runName("resnet/slow"), "resnet/slow");
});

test("quantities of the drill-down views have units", () => {
  assert.equal(plain(format.flops(6.105e14)), "611 TFLOP/s");
  assert.equal(plain(format.rate(1.8611e10)), "18.6 GB/s");
  assert.equal(format.rate(undefined), "–");
  assert.equal(plain(format.sample(1.98e9, "Hz")), "1.98 GHz");
  assert.equal(plain(format.sample(0.934, "share")), "93.4 %");
  assert.equal(plain(format.sample(71.6, "celsius")), "72 °C");
  assert.equal(format.sample(null, "W"), "–");
  assert.equal(format.between(1.5, 1.5), "");
  assert.equal(names.kernelName("void at::native::(anonymous namespace)::cunn_SoftMax<8>"), "cunn_SoftMax<8>");
  assert.equal(names.kernelName("at::"), "at::");
  assert.equal(names.sourceName("events.out.tfevents.1795.host.0"), "telemetry");
});

test("elapsed time is written like a clock", () => {
  assert.deepEqual([0, 62e9, 3_723e9].map(format.elapsed), ["0:00", "1:02", "1:02:03"]);
});

test("a tiny duration is not shown as zero", () => {
  assert.equal(plain(format.duration(0.001)), "<1 ns");
});

test("a job's gain is based on its ranks, and a missing prediction refers to the reason", () => {
  assert.equal(format.speedup(gain("ranks")).basis, "from the accounts of its ranks, between 1.30× and 1.69×");
  assert.equal(format.speedup({ ...gain("none"), because: "No shapes." }).basis, "see the reason below");
});
