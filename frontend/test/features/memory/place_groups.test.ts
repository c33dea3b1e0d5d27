import assert from "node:assert/strict";
import { test } from "node:test";
import { allSites, grouped, groupings, treeOf, type TreeNode } from "../../../src/features/memory/place_groups";
import type { MemorySite } from "../../../src/shared/report";

const site = (fields: Partial<MemorySite>): MemorySite => ({ kind: "activations", bytes: 1, blocks: 1, operator: "", module: "", file: "", line: 0, function: "", path: [], others: 0, ...fields });

test("places are grouped by what was recorded", () => {
  const sites = [
    site({ bytes: 5, module: "Linear_0", file: "train.py", line: 4, function: "step" }),
    site({ bytes: 7, module: "Linear_1", file: "train.py", line: 4, function: "step", kind: "gradients" }),
    site({ bytes: 1 }),
    site({ bytes: 2, others: 3 }),
  ];
  assert.deepEqual(grouped(sites, "line").map(({ name, bytes, kinds }) => [name, bytes, kinds]), [
    ["train.py:4 step", 12, ["activations", "gradients"]],
    ["3 other places", 2, ["activations"]],
    ["not recorded", 1, ["activations"]],
  ]);
  assert.deepEqual(grouped(sites, "module").map(({ name }) => name), ["Linear_1", "Linear_0", "3 other places", "not recorded"]);
  assert.deepEqual(grouped(sites, "kind").map(({ name, bytes }) => [name, bytes]), [["activations", 8], ["gradients", 7]]);
  assert.deepEqual(groupings(sites), ["place", "module", "line", "kind"]);
  assert.deepEqual(groupings([site({})]), ["kind"]);
});

test("what has no place is added, so that the places sum to the tensors of the peak", () => {
  const part = (kind: string, bytes: number) => ({ kind, bytes, share: 0, title: "" });
  const sites = allSites({ sites: [site({ bytes: 5 })], parts: [part("activations", 7), part("parameters", 3), part("cache", 90)] });
  assert.deepEqual(sites.map(({ kind, bytes }) => [kind, bytes]), [["activations", 5], ["activations", 2], ["parameters", 3]]);
});

const text = ({ name, bytes, children }: TreeNode): unknown => (children.length > 0 ? [name, bytes, children.map(text)] : [name, bytes]);

test("the tree has modules, lines and operators, and joins nodes with a single child", () => {
  const block = { path: ["Model_0"], module: "Block_1", file: "m.py", line: 3, function: "f" };
  const root = treeOf([
    site({ ...block, bytes: 4, operator: "aten::mm" }),
    site({ ...block, bytes: 6, operator: "aten::add", kind: "gradients" }),
    site({ path: [], module: "Model_0", bytes: 3, operator: "aten::sum" }),
    site({ bytes: 2 }),
    site({ bytes: 1, others: 2 }),
  ]);
  assert.equal(root.bytes, 16);
  assert.deepEqual(root.children.map(text), [
    ["Model_0", 13, [["Block_1 › m.py:3 f", 10, [["aten::add", 6], ["aten::mm", 4]]], ["aten::sum", 3]]],
    ["not recorded", 2],
    ["2 other places", 1],
  ]);
  assert.deepEqual([...root.children[0]!.kinds], [["activations", 7], ["gradients", 6]]);
});
