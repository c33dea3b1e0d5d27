import assert from "node:assert/strict";
import { test } from "node:test";
import { folded } from "../../../src/features/diagnosis/account_rows";

const row = (regime: string, share: number) => ({ regime, share, ns_per_step: share * 1e6, title: "", meaning: "" });
const names = (rows: readonly { readonly regime: string }[]) => rows.map(({ regime }) => regime);

test("the largest comes first and nothing is lost", () => {
  const account = [row("input", 0.2), row("sync", 0), row("compute", 0.5), row("host", 0.3), row("allocator", 0)];
  const { shown, empty } = folded(account);
  assert.deepEqual(names(shown), ["compute", "host", "input"]);
  assert.deepEqual(names(empty), ["sync", "allocator"]);
});

test("a share too small to be written is not folded away", () => {
  assert.deepEqual(names(folded([row("sync", 1e-9)]).shown), ["sync"]);
});

test("equal shares keep the server's order, and the report is not reordered", () => {
  const account = [row("input", 0.25), row("sync", 0.5), row("host", 0.25)];
  assert.deepEqual(names(folded(account).shown), ["sync", "input", "host"]);
  assert.deepEqual(names(account), ["input", "sync", "host"]);
});

test("a share that is no number is not drawn as a part of the bar", () => {
  assert.deepEqual(names(folded([row("input", Number.NaN)]).empty), ["input"]);
});
