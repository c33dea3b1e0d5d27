import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, movedAlong } from "../../../src/shared/widgets/list_navigation";

test("arrows move by one and stop at the ends", () => {
  assert.equal(moved("ArrowDown", 0, 3), 1);
  assert.equal(moved("ArrowDown", 2, 3), 2);
  assert.equal(moved("ArrowUp", 1, 3), 0);
  assert.equal(moved("ArrowUp", 0, 3), 0);
});

test("Home and End go to the ends", () => {
  assert.equal(moved("Home", 2, 3), 0);
  assert.equal(moved("End", 0, 3), 2);
});

test("without a row in focus, down enters at the first", () => {
  assert.equal(moved("ArrowDown", -1, 3), 0);
  assert.equal(moved("ArrowUp", -1, 3), 0);
});

test("other keys, and an empty list, do not move", () => {
  assert.equal(moved("a", 0, 3), undefined);
  assert.equal(moved("Enter", 0, 3), undefined);
  assert.equal(moved("ArrowDown", -1, 0), undefined);
  assert.equal(moved("End", -1, 0), undefined);
});

test("in a row of tabs the end leads back to the beginning", () => {
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End", "ArrowDown"].map((key) => movedAlong(key, 2, 3)), [0, 1, 0, 2, undefined]);
  assert.equal(movedAlong("Home", 0, 0), undefined);
});
