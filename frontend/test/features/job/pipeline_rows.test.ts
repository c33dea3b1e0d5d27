import assert from "node:assert/strict";
import { test } from "node:test";
import { describeRow, rowsOf } from "../../../src/features/job/pipeline_rows";
import { shortShare } from "../../../src/shared/text/format";
import { ranks } from "./jobs";

const pipeline = {
  step: 4,
  rank: [1, 0, 1],
  phase: ["forward", "forward", "backward"],
  microbatch: [1, 1, 1],
  begin_ns: [0, 20, 60],
  end_ns: [20, 50, 100],
  critical: [true, true, false],
};

test("rows are in the order of the table, with their stage", () => {
  const { rows, length } = rowsOf(pipeline, { ...ranks(2), stage: [1, 0] });
  assert.equal(length, 100);
  assert.deepEqual(rows.map(({ rank, stage, spans }) => [rank, stage, spans.length]), [[1, 0, 2], [0, 1, 1]]);
});

test("a row says how long it works and waits, and what of it is on the critical path", () => {
  const { rows, length } = rowsOf(pipeline, { ...ranks(2), stage: [] });
  assert.equal(describeRow(rows[0]!, length), `Works ${shortShare(0.6)} of the step in 2 passes, waits ${shortShare(0.4)}; 1 pass on the critical path`);
  assert.equal(describeRow({ ...rows[1]!, spans: [] }, length), `Works ${shortShare(0)} of the step in 0 passes, waits ${shortShare(1)}`);
});

test("columns that are too short do no harm", () => {
  const { rows } = rowsOf({ ...pipeline, phase: [], microbatch: [], critical: [] }, ranks(2));
  assert.deepEqual(rows[0]!.spans.map(({ phase, microbatch, critical }) => [phase, microbatch, critical]), [["other", 0, false], ["other", 0, false]]);
});
