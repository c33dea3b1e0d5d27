// The strip of a whole run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { binsOf, largestFirst } from "../../../src/features/diagnosis/run_parts";
import type { RunPart } from "../../../src/shared/report";

const part = (kind: string, share: number, ...bins: number[]): RunPart => ({ kind, title: kind, meaning: "", ns: share * 1e9, share, bins });

test("training lies at the bottom of each bin, and a bin is never higher than 1", () => {
  const [first, second] = binsOf([part("start", 0.5, 1, 0.25), part("training", 0.5, 0, 0.9)]);
  assert.deepEqual(first, [{ kind: "start", from: 0, height: 1 }]);
  assert.deepEqual(second!.map(({ kind, from }) => [kind, from]), [["training", 0], ["start", 0.9]]);
  assert.ok(Math.abs(second![1]!.height - 0.1) < 1e-9);
});

test("a file with other numbers of bins, or with none, is drawn as far as it goes", () => {
  assert.equal(binsOf([part("start", 1, 0.5), part("training", 1, 0.5, 2, -1)]).length, 3);
  assert.deepEqual(binsOf([part("start", 1)]), []);
  assert.deepEqual(binsOf([]), []);
});

test("parts without a noticeable share are not listed", () => {
  assert.deepEqual(largestFirst([part("end", 0.001), part("start", 0.2), part("training", 0.8)]).map(({ kind }) => kind), ["training", "start"]);
});
