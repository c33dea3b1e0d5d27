import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbour } from "../../../src/shared/run/groups";
import { entry } from "../../recordings";

test("a neighbour follows the order of the list, which groups by run, and stays at its ends", () => {
  const runs = [entry("r", "a"), entry("s", "b"), entry("r", "c")];
  assert.equal(neighbour(runs, "", "r/a", 1), "r/c");
  assert.equal(neighbour(runs, "", "r/c", 1), "s/b");
  assert.equal(neighbour(runs, "", "s/b", 1), "s/b");
  assert.equal(neighbour(runs, "", "r/a", -1), "r/a");
  assert.equal(neighbour(runs, "s", "r/a", -1), "s/b", "the first of the filtered list");
  assert.equal(neighbour(runs, "nothing", "r/a", 1), undefined);
});
