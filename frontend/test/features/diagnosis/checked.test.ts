import assert from "node:assert/strict";
import { test } from "node:test";
import { checkedRegimes } from "../../../src/features/diagnosis/checked";
import { report } from "../../recordings";

test("regimes that no run on the CPU has are left out there, unless one was found", () => {
  const judged = (regime: string, status: string) => ({ regime, status, share: 0, because: "", title: regime });
  const regimes = [judged("transfer", "clear"), judged("sync", "abstains"), judged("underfilled", "fires"), judged("input", "clear")];
  const shown = (kind: string) => checkedRegimes({ ...report("a"), regimes, device: { name: "", kind, index: 0, count: 1 } }).map(({ regime }) => regime);
  assert.deepEqual(shown("cpu"), ["underfilled", "input"]);
  assert.deepEqual(shown("cuda"), ["transfer", "sync", "underfilled", "input"]);
});
