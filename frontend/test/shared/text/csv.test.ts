import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf } from "../../../src/shared/text/csv";

test("cells are quoted where they must be, and unknown values are empty", () => {
  assert.equal(csvOf(["Name", "Bytes"], [['a "b", c', 1234.5], ["plain", undefined], ["x\ny", NaN]]), 'Name,Bytes\r\n"a ""b"", c",1234.5\r\nplain,\r\nx y,\r\n');
});

test("names from a recording are no formulas", () => {
  for (const name of ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1"]) assert.equal(csvOf(["a"], [[name]]), `a\r\n'${name}\r\n`);
  assert.equal(csvOf(["a"], [[-1]]), "a\r\n-1\r\n");
});

test("names from a recording control no terminal", () => {
  assert.equal(csvOf(["a"], [["x\u001b[31m\u009b2J\u202ey\u2028z"]]), "a\r\nx[31m2Jy z\r\n");
});
