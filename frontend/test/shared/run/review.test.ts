import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { ACTIONS, reviewCommand, reviewSummary, stateOf } from "../../../src/shared/run/review";
import type { ReviewState } from "../../../src/shared/report";
import { entry } from "../../recordings";

const state = (cause: string, fields: Partial<ReviewState> = {}): ReviewState => ({ cause, state: "open", reason: "", fixed_in: "", by: "", comments: [], earlier_comments: 0, trial: "", ...fields });
const [accept] = ACTIONS;

test("a finding has its own state, else that of the recording", () => {
  const review = { states: [state("", { state: "accepted" }), state("sync", { state: "fixed" })] };
  assert.deepEqual(["sync", "loader", ""].map((cause) => stateOf(review, cause)?.state), ["fixed", "accepted", "accepted"]);
  assert.equal(stateOf(undefined, "sync"), undefined);
});

test("the summary has the states and the number of comments", () => {
  const comment = { by: "Ana", unix_ns: 1, text: "x" };
  const states = [state("", { comments: [comment] }), state("sync", { state: "fixed", comments: [comment] })];
  assert.equal(reviewSummary(entry("r", "s", { review: { states } })), "fixed, 2 comments");
  assert.equal(reviewSummary(entry("r", "s")), "");
});

test("the command names the recording, and a shell reads its words as they are", () => {
  assert.equal(reviewCommand("/runs", entry("resnet/slow", "t.json"), "sync", accept), "tb-bottleneck review /runs accept resnet/slow/t.json --cause sync --because ");
  const bad = `it's $(touch x) \`id\` "; rm`;
  const command = reviewCommand("~/my runs", entry(`${bad}\n`, "t\u202e.json"), "", accept);
  const words = execFileSync("sh", ["-c", `printf '%s|' ${command.replace("tb-bottleneck", "")}`], { encoding: "utf8" });
  assert.equal(words, `review|~/my runs|accept|${bad}/t.json|--because|`);
});
