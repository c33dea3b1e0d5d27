import assert from "node:assert/strict";
import { test } from "node:test";
import { accountRows } from "../../../src/features/diagnosis/account_rows";

const row = (regime: string, share: number) => ({ regime, share, ns_per_step: share * 1e6, title: "", meaning: "" });
const names = (rows: readonly { readonly regime: string }[]) => rows.map(({ regime }) => regime);

test("the largest share comes first and no row is lost", () => {
  const account = [row("input", 0.2), row("sync", 0), row("compute", 0.5), row("host", 0.3), row("allocator", 0)];
  const { timed, empty } = accountRows(account);
  assert.deepEqual(names(timed), ["compute", "host", "input"]);
  assert.deepEqual(names(empty), ["sync", "allocator"]);
});

test("a share that rounds to zero is still shown", () => {
  assert.deepEqual(names(accountRows([{ ...row("sync", 1e-9), ns_per_step: 1 }]).timed), ["sync"]);
  assert.deepEqual(names(accountRows([{ ...row("sync", 1e-9), ns_per_step: 0.01 }]).empty), ["sync"], "the remainder of a division");
});

test("equal shares keep the server's order, and the report is not reordered", () => {
  const account = [row("input", 0.25), row("sync", 0.5), row("host", 0.25)];
  assert.deepEqual(names(accountRows(account).timed), ["sync", "input", "host"]);
  assert.deepEqual(names(account), ["input", "sync", "host"]);
});

test("a share that is not a number is not drawn", () => {
  assert.deepEqual(names(accountRows([row("input", Number.NaN)]).empty), ["input"]);
});
