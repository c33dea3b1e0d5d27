import assert from "node:assert/strict";
import { test } from "node:test";
import { nextInList, nextInTabs } from "../../../src/shared/widgets/list_navigation";

test("arrows move by one and stop at the ends", () => {
  assert.equal(nextInList("ArrowDown", 0, 3), 1);
  assert.equal(nextInList("ArrowDown", 2, 3), 2);
  assert.equal(nextInList("ArrowUp", 1, 3), 0);
  assert.equal(nextInList("ArrowUp", 0, 3), 0);
});

test("Home and End go to the ends", () => {
  assert.equal(nextInList("Home", 2, 3), 0);
  assert.equal(nextInList("End", 0, 3), 2);
});

test("without a focused row, down focuses the first", () => {
  assert.equal(nextInList("ArrowDown", -1, 3), 0);
  assert.equal(nextInList("ArrowUp", -1, 3), 0);
});

test("other keys, and an empty list, do not move", () => {
  assert.equal(nextInList("a", 0, 3), undefined);
  assert.equal(nextInList("Enter", 0, 3), undefined);
  assert.equal(nextInList("ArrowDown", -1, 0), undefined);
  assert.equal(nextInList("End", -1, 0), undefined);
});

test("tabs wrap around at the ends", () => {
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End", "ArrowDown"].map((key) => nextInTabs(key, 2, 3)), [0, 1, 0, 2, undefined]);
  assert.equal(nextInTabs("Home", 0, 0), undefined);
});
