import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf, firstSelection, lengthOfSteps } from "../../../src/features/job/step_bars";
import { ranks } from "./jobs";

const steps = {
  count: 2,
  begin_ns: [0, 100, 10, 110],
  end_ns: [100, 200, 110, 200],
  account: [
    { regime: "communication", share: [0.4, 0.4, 0.1, 0.1] },
    { regime: "compute", share: [0.6, 0.6, 0.9, 0.9] },
  ],
  wait_share: [0.3, 0.3, 0, 0.5],
};

test("steps lie on the clock of the job", () => {
  assert.equal(lengthOfSteps(steps), 200);
  const [, second] = barsOf(ranks(2), steps, [0, 1]);
  assert.deepEqual(second!.steps.map(({ begin, length }) => [begin, length]), [[0.05, 0.5], [0.55, 0.45]]);
});

test("collectives come last, and waiting is apart from the transfer", () => {
  const [first, second] = barsOf(ranks(2), steps, [0, 1]);
  assert.deepEqual(first!.steps[0]!.parts.map(({ regime, waiting }) => [regime, waiting]), [["compute", false], ["communication", true], ["communication", false]]);
  assert.deepEqual(second!.steps[0]!.parts.map(({ share }) => share), [0.9, 0.1]);
  assert.deepEqual(second!.steps[1]!.parts.map(({ share }) => share), [0.9, 0.1], "no more waiting than collectives");
});

test("a rank without a recording has no bars", () => {
  assert.deepEqual(barsOf(ranks(2), steps, [7]), []);
});

test("of a small job all ranks are shown first, of a large one those that explain it", () => {
  assert.deepEqual(firstSelection(ranks(8), [3]), [0, 1, 2, 3, 4, 5, 6, 7]);
  const waits = Array.from({ length: 100 }, (_, rank) => rank / 100);
  assert.deepEqual(firstSelection(ranks(100, { wait_share: waits }), [3, 4, 5, 6]), [3, 4, 5, 6, 49, 99]);
});
