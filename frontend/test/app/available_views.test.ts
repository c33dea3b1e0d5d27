import assert from "node:assert/strict";
import { test } from "node:test";
import { availableView, missingBecause } from "../../src/app/available_views";
import type { Report, RunEntry } from "../../src/shared/report";
import { VIEWS } from "../../src/shared/run/views";
import { entry, report } from "../recordings";

const trace = entry("r", "a");
const telemetry = entry("r", "b", { evidence_source: "telemetry" });

const viewsOf = (of: Report, its: RunEntry) => VIEWS.filter((view) => missingBecause(view, of, its) === undefined);

test("a recording has the views with content", () => {
  assert.deepEqual(viewsOf(report("a"), trace), ["diagnosis", "tree", "timeline", "tables", "roofline", "compare"]);
  assert.ok(viewsOf({ ...report("a"), world_size: 8 }, trace).includes("job"));
  const memory = { peak_bytes: 8, parts: [], evidence_source: "trace", kind: "cuda", estimated_bytes: 0, sites: [], findings: [], missing: "", forecasts: [], lifetimes: [] };
  assert.ok(viewsOf({ ...report("a"), memory }, trace).includes("memory"));
  assert.ok(viewsOf({ ...report("b"), memory }, telemetry).includes("memory"));
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "", title: "", action: "" };
  assert.ok(viewsOf({ ...report("a"), verdict }, trace).includes("whatif"), "a verdict can be predicted from");
  assert.ok(!viewsOf({ ...report("b"), verdict }, telemetry).includes("whatif"), "a replay needs a trace");
  assert.deepEqual(viewsOf({ ...report("a"), health: { status: "unreadable", reasons: [] } }, trace), ["diagnosis", "compare"]);
  assert.deepEqual(viewsOf(report("b"), telemetry), ["diagnosis", "live"]);
});

test("a missing view is replaced by the diagnosis", () => {
  assert.equal(availableView("timeline", report("a"), trace), "timeline");
  assert.equal(availableView("timeline", report("b"), telemetry), "diagnosis");
});
