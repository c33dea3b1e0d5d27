import assert from "node:assert/strict";
import { test } from "node:test";
import { commonFolders, commonStart, distinctNames, placeName, shortened, sourceName, sourceParts } from "../../../src/shared/text/names";
import { place } from "../../recordings";

test("the folders that all names share are found, but never a whole name", () => {
  assert.equal(commonFolders(["a/b/one", "a/b/two", "a/b/c/three"]), "a/b/");
  assert.equal(commonFolders(["a/one", "b/one"]), "");
  assert.equal(commonFolders(["a/one"]), "a/");
  assert.equal(commonFolders([]), "");
});

test("names lose what all of them begin with, up to the end of a word", () => {
  assert.equal(commonStart(["user1_resnet50_lr3e-4", "user1_resnet50_lr1e-4"]), "user1_resnet50_".length);
  assert.deepEqual([commonStart(["resnet50_a", "resnet50_b"]), commonStart(["user1_resnet50_lr3e-4"]), commonStart([])], [0, 0, 0]);
});

test("a recording is named by its process if the host is hidden", () => {
  assert.deepEqual(sourceParts("host-1a2b3c_4242.1795283861864.pt.trace.json.gz"), { name: "process 4242", at: 1_795_283_861_864 });
  assert.equal(sourceParts("node7_4242.1795283861864.pt.trace.json.gz").name, "node7_4242");
  assert.equal(sourceName("rank3.pt.trace.json"), "rank3");
});

test("a long name loses its middle", () => {
  assert.equal(shortened("short", 10), "short");
  assert.equal(shortened("user1_resnet50_lr3e-4_bs256_aug_b", 16), "user1…s256_aug_b");
  assert.equal(shortened("abcdefghij", 7), "ab…ghij");
});

test("kernels that begin alike are cut where they begin to differ", () => {
  const add = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 3> >(int)";
  const mul = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>, std::array<char*, 3> >(int)";
  const names = distinctNames([add, mul, "volta_sgemm_64x64_nt", add]);
  assert.equal(names.get(add), "vectorized_elementwise_kernel…AddFunctor<float>, std::array<char*, 3> >(int)");
  assert.equal(names.get(mul), "vectorized_elementwise_kernel…MulFunctor<float>, std::array<char*, 3> >(int)");
  assert.equal(names.get("volta_sgemm_64x64_nt"), "volta_sgemm_64x64_nt");
  assert.equal(distinctNames([]).size, 0);
});

test("a place has its line, unless it is not known", () => {
  const line = place({ file: "train.py", line: 41, function: "collate", share: 1, exact: true });
  assert.equal(placeName(line), "train.py:41 collate");
  assert.equal(placeName({ ...line, line: 0 }), "train.py collate");
  assert.equal(placeName({ ...line, file: "", block: "metrics" }), "block metrics");
});
