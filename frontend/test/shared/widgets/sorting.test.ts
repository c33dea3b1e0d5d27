import assert from "node:assert/strict";
import { test } from "node:test";
import { reordered, searched, sorted } from "../../../src/shared/widgets/sorting";

const rows = [{ name: "b", time: 2 }, { name: "a", time: 3 }, { name: "c", time: undefined }, { name: "d", time: 2 }];

test("rows without a value come last in both directions, and the sort is stable", () => {
  const names = (descending: boolean) => sorted(rows, ({ time }) => time, descending).map(({ name }) => name).join("");
  assert.deepEqual([names(true), names(false)], ["abdc", "bdac"]);
  assert.equal(sorted(rows, ({ name }) => name, false).map(({ name }) => name).join(""), "abcd");
  const devices = [{ of: "undefined" }, { of: undefined }, { of: "H200" }, { of: "a100" }, { of: "H200", last: true }];
  assert.deepEqual(sorted(devices, ({ of }) => of, false), [devices[3], devices[2], devices[4], devices[0], devices[1]]);
  assert.deepEqual(sorted(devices, ({ of }) => of, true), [devices[0], devices[2], devices[4], devices[3], devices[1]]);
});

test("a second click reverses the order; numbers start descending", () => {
  assert.deepEqual(reordered({ by: "name", descending: false }, "time", true), { by: "time", descending: true });
  assert.deepEqual(reordered({ by: "time", descending: true }, "time", true), { by: "time", descending: false });
});

test("a search needs every word, ignoring case", () => {
  const found = (search: string) => searched(["void GEMM bf16", "void copy"], (row) => row, search).length;
  assert.deepEqual([found("gemm VOID"), found("void"), found("gemm copy"), found(" ")], [1, 2, 0, 2]);
});
