import assert from "node:assert/strict";
import { test } from "node:test";
import { evidenceOf, neighbour, partName, sectionsOf, sharedFolders, trainingOf, trainingsOf } from "../../../src/shared/run/trainings";
import { titleOf } from "../../../src/shared/text/names";
import { severityWord } from "../../../src/shared/text/vocabulary";
import { entry, list } from "../../recordings";

const EVENTS = "events.out.tfevents.1795283861.7.0";
const verdict = { regime: "input", title: "Waiting for data", severity: "critical", share: 0.4, confidence: "high", headline: "", action: "" };
const trace = entry("a", "host_1.1795283861864.pt.trace.json", { verdict, peak_bytes: 5 });
const telemetry = entry("a/tb_bottleneck/20261121-110503_rank0_7", EVENTS, { evidence_source: "telemetry", peak_bytes: 9, headroom_bytes: 1 });
const both = { ...list(entry("0", "x.json"), trace, telemetry), trainings: [{ members: [2, 1], because: "Telemetry counts." }] };

test("a training is one entry: the trusted recording, named by its trace, with the highest known peak", () => {
  const [alone, training] = trainingsOf(both);
  assert.equal(trainingsOf(both).length, 2);
  assert.deepEqual([alone!.members.length, alone!.because], [1, ""]);
  assert.deepEqual([training!.source, training!.named.source, training!.because], [EVENTS, trace.source, "Telemetry counts."]);
  assert.deepEqual([training!.peak_bytes, training!.headroom_bytes], [9, 1]);
  assert.equal(evidenceOf(training!), "telemetry and trace");
  assert.deepEqual(training!.members.map((member) => partName(member, training!)), ["Telemetry", "Trace"]);
});

test("a training has the most urgent problem with the memory of its recordings", () => {
  const alert = { cause: "growing_memory", severity: "warning", headline: "Each step keeps 2 MB.", leads: true, action: "Keep numbers", title: "Memory grows" };
  const judged = { ...telemetry, verdict: { ...verdict, severity: "info" } };
  const [training] = trainingsOf({ ...list(trace, judged), trainings: [{ members: [1, 0], because: "", memory_alert: alert }] });
  assert.equal(titleOf(training!.verdict!), "Memory grows");
  assert.equal(severityWord(training!.verdict!), "warning");
  assert.equal(titleOf(judged.verdict), "Waiting for data");
});

test("every recording leads to its training, so that old addresses do", () => {
  assert.equal(trainingOf(both, `a/${trace.source}`), trainingsOf(both)[1]);
  assert.equal(trainingOf(both, `${telemetry.run}/${EVENTS}`), trainingsOf(both)[1]);
  assert.equal(trainingOf(both, "gone"), undefined);
});

test("a training is named by the run of its trace, and found by the names of all its recordings", () => {
  assert.deepEqual(trainingsOf(both).map(({ label }) => label), ["0", "a"]);
  assert.deepEqual(sectionsOf(trainingsOf(both), "rank0_7 host_1").map(({ entries }) => entries.length), [1]);
  const [first, second] = trainingsOf(both);
  assert.deepEqual([neighbour(trainingsOf(both), "", first, 1), neighbour(trainingsOf(both), "", undefined, 1), neighbour(trainingsOf(both), "", second, 1)], [second, first, second]);
});

test("names lose the folders and the words that all share, and gain the file where a run has several trainings", () => {
  const named = (...runs: string[]) => trainingsOf(list(...runs.map((run, index) => entry(run, `host_${index}.1795283861864.pt.trace.json`)))).map(({ folder, label }) => [folder, label]);
  assert.deepEqual(named("team/resnet50_augmented_lr1", "team/resnet50_augmented_lr2"), [["", "…lr1"], ["", "…lr2"]]);
  assert.deepEqual(named("team/a/x", "team/b/x", "team/b/x"), [["a", "x"], ["b", "x › host_1"], ["b", "x › host_2"]]);
  assert.deepEqual(named("a/sweep_resnet50_lr1", "a/sweep_resnet50_lr2", "b/other"), [["a", "…lr1"], ["a", "…lr2"], ["b", "other"]], "in each folder");
  assert.deepEqual(named("."), [["", "(logdir)"]]);
  assert.equal(sharedFolders(list(entry("team/a", "1"), entry("team/b", "2"))), "team/");
});

test("a job has its own verdict and gain, and no more than it knows", () => {
  const ranks = [0, 1].map((rank) => entry("job", `rank${rank}.json`, { rank, world_size: 2, verdict, gain: { expected: 2, low: 1, high: 2, basis: "replay", assumes: "", because: "" } }));
  const of = { ...verdict, regime: "communication", title: "Collectives" };
  const [job] = trainingsOf({ ...list(...ranks), trainings: [{ members: [1, 0], because: "", job: { world_size: 4, ranks: 2, verdict: of, action: "" } }] });
  assert.equal(job!.verdict?.title, "Collectives");
  assert.equal(job!.gain, undefined);
  assert.equal(evidenceOf(job!), "2 of 4 ranks");
  assert.deepEqual(job!.members.map((member) => partName(member, job!)), ["Rank 1", "Rank 0"]);
});

test("the step time is that of the whole run if its telemetry has enough steps", () => {
  const timed = (steps: number) => {
    const members = [entry("run", "a.pt.trace.json", { step_ns: 10 }), entry("run", "events.out", { evidence_source: "telemetry", step_ns: 5, step_times_ns: Array<number>(steps).fill(5) })];
    return trainingsOf({ ...list(...members), trainings: [{ members: [0, 1], because: "" }] })[0]!.step_ns;
  };
  assert.deepEqual([timed(60), timed(19)], [5, 10]);
});

test("a training is done when all its recordings are", () => {
  const waiting = { ...both, runs: both.runs.map((each) => (each === trace ? { ...each, state: "analysing", progress: 0.5 } : each)) };
  const [, training] = trainingsOf(waiting);
  assert.deepEqual([training!.state, training!.progress], ["analysing", 0.75]);
});

test("a neighbour follows the order of the list, which groups by folder, and stays at its ends", () => {
  const all = trainingsOf(list(entry("r/a", "1"), entry("s/b", "2"), entry("r/c", "3")));
  const next = (filter: string, from: number, rows: 1 | -1) => neighbour(all, filter, all[from], rows)?.source;
  assert.deepEqual([next("", 0, 1), next("", 2, 1), next("", 1, 1), next("", 0, -1)], ["3", "2", "2", "1"]);
  assert.equal(next("s/b", 0, -1), "2", "the first of the filtered list");
  assert.equal(next("nothing", 0, 1), undefined);
});
