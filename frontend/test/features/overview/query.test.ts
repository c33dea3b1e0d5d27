import assert from "node:assert/strict";
import { test } from "node:test";
import { gainText } from "../../../src/features/overview/columns";
import { changeOf, lastVisit, storeVisit, type Visit } from "../../../src/features/overview/last_visit";
import { ALL, groupsOf, matching, mostToGain, mostUrgentFirst, NO_VERDICT, NOT_KNOWN, parseQuery, queryText, recoverable, severityCounts } from "../../../src/features/overview/query";
import { samplesPerSecond, type Grouping } from "../../../src/features/overview/facts";
import type { RunEntry, Verdict } from "../../../src/shared/report";
import { trainingsOf } from "../../../src/shared/run/trainings";
import { entry, list } from "../../recordings";

const verdict = (regime: string, severity: string): Verdict => ({ regime, title: regime === "input" ? "Waiting for data" : regime, severity, share: 0.4, confidence: "high", headline: "", action: "" });
const gain = (expected: number) => ({ expected, low: expected, high: expected, basis: "replay", assumes: "", because: "" });
const slow = entry("team/a", "one", { verdict: verdict("input", "critical"), gain: gain(2), action: "Let worker processes create the batches", device: "NVIDIA H200", step_ns: 50 });
const healthy = entry("team/b", "two", { verdict: verdict("compute", "none"), step_ns: 10 });
const unread = entry("other", "three", { health: "unreadable" });
const runs = [slow, healthy, unread];
const NOW = 1_795_283_861_864;
const matches = (entries: readonly RunEntry[], part: object, visit?: Visit) => matching(trainingsOf(list(...entries)), { ...ALL, ...part }, { visit, shared: "", now: NOW }).map(({ source }) => source);
const found = (part: object, visit?: Visit) => matches(runs, part, visit);

test("a query and its text are the same in both directions, and the default has a text too", () => {
  const query = { words: "slow loader", severity: "critical", regime: "input", since: "slower", review: "open", within: "week", sort: { by: "step", descending: true }, by: "device", group: "", columns: ["rate", "memory"] } as const;
  assert.deepEqual(parseQuery(queryText(query)), query);
  assert.equal(queryText(ALL), "all");
  assert.deepEqual(parseQuery("all"), ALL);
  assert.deepEqual(parseQuery("since=yesterday&review=lost&sort=&by=luck&group=7&within=hour&unknown=1"), ALL);
});

test("every word is looked for in names, verdict, severity, action and device", () => {
  assert.deepEqual(found({ words: "CRITICAL waiting h200 workers" }), []);
  assert.deepEqual(found({ words: "critical waiting h200 worker" }), ["one"]);
  assert.deepEqual(found({ words: "unreadable" }), ["three"]);
  assert.deepEqual(found({ severity: NO_VERDICT }), ["three"]);
  assert.deepEqual(found({ regime: "compute" }), ["two"]);
  assert.deepEqual(found({}), ["one", "two", "three"]);
});

test("the review filters by the state of findings, and its words are found", () => {
  const state = { cause: "sync", state: "accepted", reason: "", fixed_in: "", by: "Ana", comments: [], earlier_comments: 0, trial: "" };
  const reviewed = [{ ...slow, open_findings: 1, review: { states: [state] } }, { ...healthy, open_findings: 0 }];
  const sources = (part: object) => matches(reviewed, part);
  assert.deepEqual([sources({ review: "open" }), sources({ review: "accepted" }), sources({ review: "fixed" })], [["one"], ["one"], []]);
  assert.deepEqual([sources({ words: "slow accepted" }), sources({ words: "slow fixed" })], [["one"], []]);
});

test("severities are counted from critical on, and the recoverable share follows the gain", () => {
  assert.deepEqual(severityCounts([...runs, entry("x", "y", { state: "waiting" })]), [["critical", 1], ["none", 1], [NO_VERDICT, 1]]);
  assert.deepEqual(severityCounts([entry("x", "y", { verdict: verdict("unexplained", "none") })]), [[NOT_KNOWN, 1]]);
  assert.equal(recoverable(slow), 0.5);
  assert.equal(recoverable(healthy), undefined);
});

test("users find what they call slow loading, and what was recorded within a week", () => {
  assert.deepEqual(found({ words: "slow loader" }), ["one"]);
  const files = [entry("a", `host_1.${NOW - 3 * 86_400_000}.pt.trace.json`), entry("b", `host_1.${NOW - 9 * 86_400_000}.pt.trace.json`), entry("c", "copied.json", { modified_unix_ns: NOW * 1e6 })];
  assert.deepEqual(matches(files, { within: "week" }), [files[0]!.source, "copied.json"]);
  assert.equal(matches(files, { within: "month" }).length, 3);
});

test("trainings are grouped by the first folder that they do not share, or by a fact", () => {
  const all = trainingsOf(list(entry("team/a/x", "1"), entry("team/a/y", "2"), entry("team/b/x/tb_bottleneck/20261121-110503_rank0_7", "3", { device: "NVIDIA H200" })));
  const names = (by: Grouping) => groupsOf(all, by, "team/").map(({ name, entries }) => [name, entries.length]);
  assert.deepEqual(names("folder"), [["a", 2], ["b", 1]]);
  assert.deepEqual(names("run"), [["a/x", 1], ["a/y", 1], ["b/x", 1]]);
  assert.deepEqual(names("device"), [["", 2], ["NVIDIA H200", 1]]);
  assert.deepEqual(matching(all, { ...ALL, by: "device", group: "" }, { visit: undefined, shared: "team/", now: NOW }).map(({ source }) => source), ["1", "2"]);
});

test("a figure that is not known says why", () => {
  const [timed, job] = trainingsOf({ ...list(entry("a", "1", { step_ns: 1e8, efficiency: { samples_per_step: 64, samples_basis: "", types: [], notes: [] } }), entry("b", "2", { rank: 0 }), entry("b", "3", { rank: 1 })), trainings: [{ members: [1, 2], because: "", job: { world_size: 2, ranks: 2, action: "" } }] });
  assert.deepEqual(samplesPerSecond(timed!), { value: 640 });
  assert.match(JSON.stringify(samplesPerSecond(job!)), /may share samples/);
  assert.match(JSON.stringify(samplesPerSecond(trainingsOf(list(entry("a", "1")))[0]!)), /No step was timed/);
});

test("the next visit finds what is new and what is slower", () => {
  const stored = new Map<string, string>();
  const storage = { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, text: string) => void stored.set(key, text) };
  assert.equal(lastVisit("/runs", storage), undefined);
  storeVisit(list(slow, healthy), 5, storage);
  const visit = lastVisit("/runs", storage);
  assert.equal(visit?.at, 5);
  const slower = { ...slow, step_ns: 60 };
  assert.deepEqual(trainingsOf(list(slower, healthy, unread)).map((each) => changeOf(each, visit)), ["slower", "", "new"]);
  assert.equal(changeOf(trainingsOf(list(unread))[0]!, undefined), "", "nothing is new at the first visit");
  assert.deepEqual(found({ since: "new" }, visit), ["three"]);
  stored.set("tb_bottleneck.visit./runs", "{broken");
  assert.equal(lastVisit("/runs", storage), undefined);
});

test("the trainings with the most to gain are the first of all in that order, and earlier ones come first among equals", () => {
  const trainings = [1.2, 3, 0.9, 2, 3, 1.1].map((expected, index) => entry(`run${index}`, "one", { gain: gain(expected) })).concat(healthy);
  const found = (most: number) => mostToGain(trainings, most).map(({ run }) => run);
  assert.deepEqual(found(3), ["run1", "run4", "run3"]);
  assert.deepEqual(found(10), ["run1", "run4", "run3", "run0", "run5"]);
  const bound = entry("bound", "one", { gain: { ...gain(19), basis: "bound" } });
  assert.deepEqual(mostToGain([bound, ...trainings], 10).map(({ run }) => run).slice(-2), ["run5", "bound"]);
  const once = entry("once", "one", { gain: gain(5), verdict: { ...verdict("host", "warning"), confidence: "low" } });
  assert.deepEqual(mostToGain([once, ...trainings], 10).map(({ run }) => run).slice(-2), ["run5", "once"], "low confidence");
});

test("a bound is shown by what it cannot exceed, and not by what is expected", () => {
  const half = entry("half", "one", { gain: { ...gain(1.19), high: 1.48, basis: "bound" } });
  assert.deepEqual([gainText(half), gainText(slow)], ["≤1.48×", "2.00×"]);
});

test("the most severe come first, of those the largest gain, and a problem with the memory counts", () => {
  const alert = { cause: "memory_leak", title: "Memory grows", headline: "", severity: "critical", action: "", leads: true };
  const all = [
    healthy,
    unread,
    entry("a", "small", { verdict: verdict("sync", "warning"), gain: gain(1.2) }),
    entry("a", "large", { verdict: verdict("sync", "warning"), gain: gain(3) }),
    entry("a", "without", { verdict: verdict("sync", "warning") }),
    entry("a", "leak", { verdict: { ...verdict("compute", "none"), memory_alert: alert } }),
    slow,
  ];
  assert.deepEqual(mostUrgentFirst(all).map(({ source }) => source), ["one", "leak", "large", "small", "without", "two", "three"]);
});
