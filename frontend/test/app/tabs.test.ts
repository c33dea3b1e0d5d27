import assert from "node:assert/strict";
import { test } from "node:test";
import { shownView, viewsOf } from "../../src/app/tabs";
import { entry, report } from "../recordings";

const trace = entry("r", "a");
const series = entry("r", "b", { evidence_source: "telemetry" });

test("a recording has the views that there is something to see in", () => {
  assert.deepEqual(viewsOf(report("a"), trace), ["diagnosis", "timeline", "tables", "roofline", "compare"]);
  assert.ok(viewsOf({ ...report("a"), world_size: 8 }, trace).includes("ranks"));
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "", title: "" };
  assert.ok(viewsOf({ ...report("a"), verdict }, trace).includes("whatif"), "something is known that could be otherwise");
  assert.ok(!viewsOf({ ...report("b"), verdict }, series).includes("whatif"), "a replay needs a trace");
  assert.deepEqual(viewsOf({ ...report("a"), health: { status: "unreadable", reasons: [] } }, trace), ["diagnosis", "compare"]);
  assert.deepEqual(viewsOf(report("b"), series), ["diagnosis", "live"]);
});

test("a view that this recording does not have is its diagnosis", () => {
  assert.equal(shownView("timeline", report("a"), trace), "timeline");
  assert.equal(shownView("timeline", report("b"), series), "diagnosis");
});
