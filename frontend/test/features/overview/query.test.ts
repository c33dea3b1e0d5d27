import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, lastVisit, storeVisit, type Visit } from "../../../src/features/overview/last_visit";
import { ALL, foldersOf, matching, NO_VERDICT, NOT_KNOWN, parseQuery, queryText, recoverable, severityCounts } from "../../../src/features/overview/query";
import type { Verdict } from "../../../src/shared/report";
import { entry, list } from "../../recordings";

const verdict = (regime: string, severity: string): Verdict => ({ regime, title: regime === "input" ? "Waiting for data" : regime, severity, share: 0.4, confidence: "high", headline: "", action: "" });
const gain = (expected: number) => ({ expected, low: expected, high: expected, basis: "replay", assumes: "", because: "" });
const slow = entry("team/a", "one", { verdict: verdict("input", "critical"), gain: gain(2), action: "Let worker processes create the batches", device: "NVIDIA H200", step_ns: 50 });
const healthy = entry("team/b", "two", { verdict: verdict("compute", "none"), step_ns: 10 });
const unread = entry("other", "three", { health: "unreadable" });
const runs = [slow, healthy, unread];
const found = (part: object, visit?: Visit) => matching(runs, { ...ALL, ...part }, visit).map(({ source }) => source);

test("a query and its text are the same in both directions, and the default has a text too", () => {
  const query = { words: "slow loader", severity: "critical", regime: "input", since: "slower", review: "open", sort: { by: "step", descending: true }, folders: true } as const;
  assert.deepEqual(parseQuery(queryText(query)), query);
  assert.equal(queryText(ALL), "all");
  assert.deepEqual(parseQuery("all"), ALL);
  assert.deepEqual(parseQuery("since=yesterday&review=lost&sort=&unknown=1"), ALL);
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
  const state = { cause: "sync", state: "accepted", reason: "", fixed_in: "", by: "Ana", owner: "Ben", comments: [], earlier_comments: 0 };
  const reviewed = [{ ...slow, open_findings: 1, review: { states: [state], baseline: "", group: "" } }, { ...healthy, open_findings: 0 }];
  const sources = (part: object) => matching(reviewed, { ...ALL, ...part }, undefined).map(({ source }) => source);
  assert.deepEqual([sources({ review: "open" }), sources({ review: "accepted" }), sources({ review: "fixed" })], [["one"], ["one"], []]);
  assert.deepEqual([sources({ words: "ben accepted" }), sources({ words: "ben fixed" })], [["one"], []]);
});

test("severities are counted from critical on, and the recoverable share follows the gain", () => {
  assert.deepEqual(severityCounts([...runs, entry("x", "y", { state: "waiting" })]), [["critical", 1], ["none", 1], [NO_VERDICT, 1]]);
  assert.deepEqual(severityCounts([entry("x", "y", { verdict: verdict("unexplained", "none") })]), [[NOT_KNOWN, 1]]);
  assert.equal(recoverable(slow), 0.5);
  assert.equal(recoverable(healthy), undefined);
});

test("folders are the first parts of the runs' names", () => {
  assert.deepEqual(foldersOf([...runs, entry("", "four")]).map(({ name, entries }) => [name, entries.length]), [["team", 2], ["other", 1], [".", 1]]);
});

test("the next visit finds what is new and what is slower", () => {
  const stored = new Map<string, string>();
  const storage = { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, text: string) => void stored.set(key, text) };
  assert.equal(lastVisit("/runs", storage), undefined);
  storeVisit(list(slow, healthy), 5, storage);
  const visit = lastVisit("/runs", storage);
  assert.equal(visit?.at, 5);
  const slower = { ...slow, step_ns: 60 };
  assert.deepEqual([slower, healthy, unread].map((each) => changeOf(each, visit)), ["slower", "", "new"]);
  assert.equal(changeOf(unread, undefined), "", "nothing is new at the first visit");
  assert.deepEqual(found({ since: "new" }, visit), ["three"]);
  stored.set("tb_bottleneck.visit./runs", "{broken");
  assert.equal(lastVisit("/runs", storage), undefined);
});
