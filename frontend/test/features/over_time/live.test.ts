import assert from "node:assert/strict";
import { test } from "node:test";
import { pollDelay, reduce, START } from "../../../src/app/state";
import { shade } from "../../../src/features/over_time/shade";
import { isOpen, liveJobOf, type LiveJob } from "../../../src/shared/live";
import { entry, list } from "../../recordings";

const job: LiveJob = {
  run: "bert",
  world_size: 2,
  step: 10,
  verdict: { cause: "alike", severity: "none", headline: "", fix: "", ranks: [], place: "", stalled: false, since_s: null, waiting: [] },
  missing_ranks: [],
  ranks: [0, 1].map((rank) => ({ rank, state: "running", directory: `bert/tb_bottleneck/${rank}`, step: 10, age_s: 1 })),
};
const ended: LiveJob = { ...job, verdict: { ...job.verdict, cause: "ended" } };

test("a job is found by the run directory of any of its ranks", () => {
  assert.equal(liveJobOf([ended, job], "bert/tb_bottleneck/1"), ended);
  assert.equal(liveJobOf([job], "bert"), undefined);
  assert.equal(liveJobOf(undefined, "bert"), undefined);
});

test("the list is asked for more often while a job trains", () => {
  const idle = reduce(START, { type: "runs", list: list(entry("bert", "a")) });
  const delay = (jobs: readonly LiveJob[]) => pollDelay(reduce(idle, { type: "live", jobs }));
  assert.ok(delay([job]) < pollDelay(idle));
  assert.equal(delay([ended]), pollDelay(idle));
  assert.ok(isOpen(job) && !isOpen(ended));
});

test("a longer time and a lower clock are darker", () => {
  assert.ok(shade(40, 20, true) > shade(20, 20, true));
  assert.ok(shade(1200, 1700, false) > shade(1700, 1700, false));
  assert.equal(shade(400, 20, true), 1);
  assert.ok(shade(0, 20, true) < 0.1, "a part of the run without a step");
});
