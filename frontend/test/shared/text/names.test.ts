import assert from "node:assert/strict";
import { test } from "node:test";
import { commonFolders, shortened } from "../../../src/shared/text/names";

test("the folders that all names share are found, but never a whole name", () => {
  assert.equal(commonFolders(["a/b/one", "a/b/two", "a/b/c/three"]), "a/b/");
  assert.equal(commonFolders(["a/one", "b/one"]), "");
  assert.equal(commonFolders(["a/one"]), "a/");
  assert.equal(commonFolders([]), "");
});

test("a long name loses its middle", () => {
  assert.equal(shortened("short", 10), "short");
  assert.equal(shortened("user1_resnet50_lr3e-4_bs256_aug_b", 16), "user1…s256_aug_b");
  assert.equal(shortened("abcdefghij", 7), "ab…ghij");
});
