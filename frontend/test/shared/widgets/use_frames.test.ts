import assert from "node:assert/strict";
import { test } from "node:test";
import { mixed } from "../../../src/shared/widgets/use_frames";

test("new rows replace those from before little by little, and at the end only the new ones are left", () => {
  const [before, rows] = [["a", "b", "c", "d"], ["1", "2", "3"]];
  assert.deepEqual([0, 2, 3, 9].map((ready) => mixed(rows, ready, before).join("")), ["abc", "12c", "123", "123"]);
  assert.equal(mixed(["1", "2", "3", "4", "5"], 2, before).join(""), "12cd");
});
