import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../../src/shared/server/api";
import { settled } from "../../../src/shared/server/polling";

const stage = (state: string, progress = 0, problem = ""): Answer<{ state: string; progress: number; problem: string }> => ({ kind: "ok", value: { state, progress, problem } });

test("it is asked again until the answer is done, and how far it is, is told", async () => {
  const answers = [stage("waiting"), stage("analysing", 0.5), stage("done", 1)];
  const told: number[] = [];
  const found = await settled(async () => answers.shift()!, new AbortController().signal, (progress) => told.push(progress));
  assert.deepEqual([found.kind, told, answers.length], ["ok", [0, 0.5], 0]);
});

test("what failed says why, and what is no longer wanted is asked for no more", async () => {
  const never = new AbortController().signal;
  assert.deepEqual(await settled(async () => stage("failed", 0, "No such file."), never, () => undefined), { kind: "failed", message: "No such file." });
  const leaving = new AbortController();
  let asked = 0;
  const found = settled(async () => (asked++, stage("waiting")), leaving.signal, () => leaving.abort());
  assert.deepEqual([await found, asked], [{ kind: "aborted" }, 1]);
});
