import assert from "node:assert/strict";
import { test } from "node:test";
import { reordered, searched, sorted } from "../../../src/shared/widgets/sorting";

const rows = [{ name: "b", time: 2 }, { name: "a", time: 3 }, { name: "c", time: undefined }, { name: "d", time: 2 }];

test("rows without a value come last either way, and equal ones stay as they were", () => {
  const names = (down: boolean) => sorted(rows, ({ time }) => time, down).map(({ name }) => name).join("");
  assert.deepEqual([names(true), names(false)], ["abdc", "bdac"]);
  assert.equal(sorted(rows, ({ name }) => name, false).map(({ name }) => name).join(""), "abcd");
});

test("a second click turns the order around; figures begin with the greatest", () => {
  assert.deepEqual(reordered({ by: "name", down: false }, "time", true), { by: "time", down: true });
  assert.deepEqual(reordered({ by: "time", down: true }, "time", true), { by: "time", down: false });
});

test("a search wants every word, in any case", () => {
  const found = (search: string) => searched(["void GEMM bf16", "void copy"], (row) => row, search).length;
  assert.deepEqual([found("gemm VOID"), found("void"), found("gemm copy"), found(" ")], [1, 2, 0, 2]);
});
