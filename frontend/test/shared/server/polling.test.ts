import assert from "node:assert/strict";
import { test } from "node:test";
import { poll } from "../../../src/shared/server/polling";
import type { Result } from "../../../src/shared/server/result";

const status = (state: string, progress = 0, problem = ""): Result<{ state: string; progress: number; problem: string }> => ({ kind: "ok", value: { state, progress, problem } });

test("a request is repeated until it is done, with progress in between", async () => {
  const answers = [status("waiting"), status("analysing", 0.5), status("done", 1)];
  const progressed: number[] = [];
  const result = await poll(async () => answers.shift()!, new AbortController().signal, (progress) => progressed.push(progress));
  assert.deepEqual([result.kind, progressed, answers.length], ["ok", [0, 0.5], 0]);
});

test("a failure has its reason, and a cancelled request is not repeated", async () => {
  const never = new AbortController().signal;
  assert.deepEqual(await poll(async () => status("failed", 0, "No such file."), never, () => undefined), { kind: "failed", message: "No such file." });
  const controller = new AbortController();
  let requests = 0;
  const result = poll(async () => (requests++, status("waiting")), controller.signal, () => controller.abort());
  assert.deepEqual([await result, requests], [{ kind: "aborted" }, 1]);
});
