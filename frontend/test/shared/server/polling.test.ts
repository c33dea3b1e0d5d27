import assert from "node:assert/strict";
import { test } from "node:test";
import { poll } from "../../../src/shared/server/polling";
import type { Attempt } from "../../../src/shared/server/result";

const pending = (progress: number): Attempt<string> => ({ kind: "pending", value: { state: "analysing", progress } });
const never = new AbortController().signal;

test("a request is repeated until it is not pending, with its progress", async () => {
  const attempts: Attempt<string>[] = [pending(0), pending(0.5), { kind: "ok", value: "done" }];
  const progressed: number[] = [];
  const result = await poll(async () => attempts.shift()!, never, (progress) => progressed.push(progress));
  assert.deepEqual([result, progressed, attempts.length], [{ kind: "ok", value: "done" }, [0, 0.5], 0]);
});

test("a failure ends the repetition, and so does a cancelled request", async () => {
  const failure = { kind: "failed", message: "No such file." } as const;
  assert.deepEqual(await poll(async () => failure, never), failure);
  const controller = new AbortController();
  let requests = 0;
  const result = poll(async () => (requests++, pending(0)), controller.signal, () => controller.abort());
  assert.deepEqual([await result, requests], [{ kind: "aborted" }, 1]);
});
