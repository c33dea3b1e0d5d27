import assert from "node:assert/strict";
import { test } from "node:test";
import { hasView, missingBecause, missingFrom, recordingFor } from "../../src/app/available_views";
import type { Report, RunEntry } from "../../src/shared/report";
import { VIEWS } from "../../src/shared/run/views";
import { entry, report } from "../recordings";

const trace = entry("r", "a");
const telemetry = entry("r", "b", { evidence_source: "telemetry" });

const viewsOf = (of: Report, its: RunEntry) => VIEWS.filter((view) => missingBecause(view, of, its, [its]) === undefined);

test("a recording has the views with content", () => {
  assert.deepEqual(viewsOf(report("a"), trace), ["diagnosis", "tree", "timeline", "compare"]);
  assert.ok(viewsOf({ ...report("a"), world_size: 8 }, trace).includes("job"));
  const memory = { peak_bytes: 8, parts: [], evidence_source: "trace", kind: "cuda", estimated_bytes: 0, sites: [], findings: [], missing: "", forecasts: [], lifetimes: [] };
  assert.ok(viewsOf({ ...report("a"), memory }, trace).includes("memory"));
  assert.ok(viewsOf({ ...report("b"), memory }, telemetry).includes("memory"));
  assert.deepEqual(viewsOf({ ...report("a"), health: { status: "unreadable", reasons: [] } }, trace), ["diagnosis", "compare"]);
  assert.deepEqual(viewsOf(report("b"), telemetry), ["diagnosis", "live", "compare"]);
});

test("a missing view is replaced by the diagnosis", () => {
  assert.equal(missingFrom("timeline", report("a"), trace), undefined);
  assert.match(missingFrom("timeline", report("b"), telemetry) ?? "", /no single operations/);
});

test("a view opens with the recording of the training that has it", () => {
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "", title: "", action: "" };
  const snapshot = entry("r", "c", { evidence_source: "snapshot", peak_bytes: 8 });
  const judged = entry("r", "d", { verdict });
  const members = [telemetry, trace, judged, entry("r", "e"), snapshot];
  const opened = (view: (typeof VIEWS)[number], chosen: RunEntry) => recordingFor(view, chosen, members).source;
  assert.deepEqual(["diagnosis", "timeline", "compare", "memory", "live"].map((view) => opened(view as "live", telemetry)), ["b", "d", "d", "c", "b"]);
  assert.deepEqual([opened("timeline", trace), opened("live", trace)], ["a", "b"], "the chosen one stays if it has the view");
  assert.equal(opened("job", telemetry), "b", "no recording has it");
  assert.equal(missingBecause("timeline", report("b"), telemetry, members), undefined);
  assert.match(missingBecause("timeline", report("b"), telemetry, [telemetry]) ?? "", /no single operations/);
});

test("a view of a job opens with the same rank", () => {
  const [first, second] = [0, 1].map((rank) => entry("r", `rank${rank}`, { rank, world_size: 2 }));
  const chosen = { ...telemetry, rank: 1, world_size: 2 };
  assert.equal(recordingFor("timeline", chosen, [chosen, first!, second!]), second);
});

test("an unreadable trace has no operations", () => {
  assert.ok(!hasView("timeline", { ...trace, health: "unreadable" }));
});
