import assert from "node:assert/strict";
import test from "node:test";
import { reportMarkdown } from "../../../src/features/diagnosis/markdown";
import type { Place } from "../../../src/shared/report";
import { report } from "../../recordings";

const place = (fields: Partial<Place>): Place => ({ file: "", line: 0, function: "", module: "", share: 0, block: "", chain: [], ...fields });

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
