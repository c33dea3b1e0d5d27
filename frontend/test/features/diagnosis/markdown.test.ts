import assert from "node:assert/strict";
import test from "node:test";
import { reportMarkdown } from "../../../src/features/diagnosis/markdown";
import { efficiencyMarkdown } from "../../../src/features/efficiency/markdown";
import type { Report } from "../../../src/shared/report";
import { place, report } from "../../recordings";

test("a finding lists the lines of the program that cost most", () => {
  const where = [
    place({ file: "train.py", line: 41, function: "add_rows", share: 0.85, chain: ["train.py(80): main", "train.py(41): add_rows"] }),
    place({ block: "eval", share: 0.11 }),
    place({ file: "train.py", line: 80, function: "main", share: 0.04 }),
  ];
  const finding = { cause: "host_python", regime: "host", cost_share: 0.5, evidence: [], title: "Python", where };
  const lines = reportMarkdown({ ...report("a.pt.trace.json"), findings: [finding] }).split("\n");
  assert.deepEqual(
    lines.filter((line) => line.startsWith("- ")),
    ["- train.py:41 add\\_rows: 85.0 % of this cost (train.py(80): main › train.py(41): add\\_rows)", "- block eval: 11.0 % of this cost"],
  );
});

test("the action leads, and the cause follows it", () => {
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "The GPU waits.", title: "Waiting for data" };
  const linesWith = (action: string) => reportMarkdown({ ...report("a.pt.trace.json"), verdict: { ...verdict, action } }).split("\n");
  assert.deepEqual(linesWith("Use workers: about 1.7× faster (1.5 to 1.8)").slice(0, 4), ["## Use workers: about 1.7× faster (1.5 to 1.8)", "", "The GPU waits.", ""]);
  assert.equal(linesWith("")[0], "## The GPU waits.");
});

test("a part that could not be built is said among what was not judged", () => {
  const because = "The efficiency could not be determined. This is an error in tb_bottleneck.";
  const markdown = reportMarkdown({ ...report("a.pt.trace.json"), broken_parts: [{ part: "efficiency", because }] });
  assert.ok(markdown.includes("### Not judged\n\n- The efficiency could not be determined. This is an error in tb\\_bottleneck."), markdown);
});

test("the parts beside the findings are in it, with names that cannot become markup", () => {
  const evidence = [{ measure: "m", label: "Distance", value: 2, unit: "count", per: "", count: 1, compared_with: "" }];
  const full = {
    ...report("a.pt.trace.json"),
    input: { stages: [{ stage: "transform", name: "Crop", title: "transform <Crop>", share: 0.6, ns_per_batch: 6e6 }], basis: "frames", workers: 1, workers_needed: 2 },
    compilation: {
      functions: [{ function: "forward", file: "m.py", line: 5, compilations: 0, reasons: [], failure: "line 7, in a loop: item()" }],
      breaks: [{ function: "forward", file: "m.py", line: 9, reason: "print", ns_per_step: 2e6 }],
      outside: [{ name: "aten::mm", calls: 2, ns_per_step: 1e6 }],
      regions: 3,
      missing: "",
    },
    graphs: { graphs: [{ operations: 993, launches: 4, device_ns: 35e6, idle_ns: 0, call_ns: 2e5, place: place({ block: "denoise" }) }], launches: 4, outside: [], outside_operations: 7, outside_ns: 3e6 },
    serving: { server: "vLLM", kinds: [], shapes: [{ kind: "decode", count: 4, share: 0.5, step_ns: 1e6, decode_requests: 8 }] },
    headroom: [{ kind: "operator", title: "aten::bmm", summary: "", evidence, share: 0.2 }],
    efficiency: { types: [], notes: [{ field: "goodput", title: "Goodput", unit: "share", definition: "d", basis: "60 steps", because: "" }], goodput: 0.5, samples_basis: "" },
  } as unknown as Report;
  const markdown = reportMarkdown(full, efficiencyMarkdown(full));
  for (const line of [
    "| Transform \\<Crop\\> | 60.0 % | 6.00 ms |",
    "- Runs without compiled code: m.py:5 forward; line 7, in a loop: item()",
    "- Graph break: m.py:9 forward; 2.00 ms per step; print",
    "3 compiled regions per step.",
    "| Decode: 4 steps (decode 8 requests) | 50.0 % | 1.00 ms |  |  |",
    "4 launches per step; outside of them, 7 operations run for 3.00 ms per step.",
    "| 993 operations in block denoise, 4 per step | 35.0 ms | 0 ms |  | 200 µs |",
    "| Goodput | 50 % | 60 steps |",
  ])
    assert.ok(markdown.split("\n").includes(line), line);
  assert.ok(markdown.includes("Operators outside of the graphs, per step: aten::mm (2 calls, 1.00 ms)."));
  assert.ok(markdown.includes("- aten::bmm: 20 % of the time lies beyond it (Distance: "));
});

test("the storage of the data is told without the stages of making a batch", () => {
  const input = { stages: [], basis: "", storage: { kind: "rotational", filesystem: "ext4" } };
  const lines = reportMarkdown({ ...report("a.pt.trace.json"), input }).split("\n");
  assert.deepEqual(lines.slice(lines.indexOf("### Making a batch")).filter(Boolean).slice(0, 2), ["### Making a batch", "Data: on a rotating disk (ext4)."]);
  assert.ok(!lines.some((line) => line.startsWith("| Stage")));
});

test("a problem with the memory is a finding, and leads if it is more urgent", () => {
  const verdict = { regime: "input", share: 0.4, severity: "info", confidence: "high", headline: "The GPU waits.", title: "Waiting for data", action: "Use workers" };
  const alert = { cause: "growing_memory", severity: "warning", headline: "Keep numbers: each step keeps 2 MB.", action: "Keep numbers", title: "Memory grows" };
  const findings = [
    { cause: "growing_memory", title: "Memory grows", severity: "warning", bytes: 1, evidence: [], headline: alert.headline },
    { cause: "tensor_dominates", title: "One tensor", severity: "info", bytes: 1, evidence: [], headline: "" },
  ];
  const finding = { cause: "loader", regime: "input", cost_share: 0.5, evidence: [], title: "Batches", where: [] };
  const memory = { peak_bytes: 1, parts: [], evidence_source: "trace", kind: "cuda", estimated_bytes: 0, sites: [], findings, missing: "", forecasts: [], lifetimes: [] };
  const titles = (leads: boolean) => {
    const made = { ...report("a.pt.trace.json"), memory, findings: [finding], verdict: { ...verdict, memory_alert: { ...alert, leads } } };
    return reportMarkdown(made).split("\n").filter((line) => line.startsWith("#"));
  };
  assert.deepEqual(titles(true), ["## Keep numbers: each step keeps 2 MB.", "### Memory grows", "### Batches"]);
  assert.deepEqual(titles(false), ["## Use workers", "### Batches", "### Memory grows"]);
});

test("a step time says whether a profiler ran", () => {
  const about = (basis: string) => reportMarkdown({ ...report("a"), window: { steps: 5, basis, begin_ns: 0, end_ns: 5e6, step_times_ns: [], step_ns: { mean: 1e6, median: 1e6, p10: 1e6, p90: 1e6 } } });
  assert.match(about("profiler_step"), /mean step, profiled: 1\.00 ms/);
  assert.match(about("step_clock"), /mean step, without a profiler: 1\.00 ms/);
});
