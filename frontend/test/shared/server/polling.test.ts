import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../../src/shared/server/api";
import { settled } from "../../../src/shared/server/polling";

const pending = (progress: number): Answer<string> => ({ kind: "pending", value: { state: "analysing", progress } });
const never = new AbortController().signal;

test("the request is repeated until the answer is there, and reports its progress", async () => {
  const answers: Answer<string>[] = [pending(0), pending(0.5), { kind: "ok", value: "there" }];
  const progress: number[] = [];
  const answer = await settled(async () => answers.shift()!, never, (share) => progress.push(share));
  assert.deepEqual([answer, progress, answers.length], [{ kind: "ok", value: "there" }, [0, 0.5], 0]);
});

test("a failure ends the repetition, and so does a request that is called off", async () => {
  const failure = { kind: "failed", message: "No such file." } as const;
  assert.deepEqual(await settled(async () => failure, never), failure);
  const leaving = new AbortController();
  let requests = 0;
  const answer = settled(async () => (requests++, pending(0)), leaving.signal, () => leaving.abort());
  assert.deepEqual([await answer, requests], [{ kind: "aborted" }, 1]);
});
