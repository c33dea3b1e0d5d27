import assert from "node:assert/strict";
import { test } from "node:test";
import { storeEnd, tourRuns } from "../../../src/features/tour/runs";

const nothingStored = { getItem: () => null };

test("the address names the recording before the fix and the one after it", () => {
  const text = [encodeURIComponent("a,b/slow"), encodeURIComponent("a,b/fixed")].join(",");
  assert.deepEqual(tourRuns(text, nothingStored), { before: "a,b/slow", after: "a,b/fixed" });
});

test("anything else asks for no tour", () => {
  for (const text of [undefined, "", "one", "a,", "a,b,c", "%zz,b"]) assert.equal(tourRuns(text, nothingStored), undefined);
});

test("who has ended the tour does not see it again", () => {
  const stored = new Map<string, string>();
  storeEnd({ setItem: (key, value) => void stored.set(key, value) });
  assert.equal(tourRuns("a,b", { getItem: (key) => stored.get(key) ?? null }), undefined);
});
