import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunEntry } from "../../src/shared/report";
import { chosenEntry, focusIn, groups, hasVanished, keyOf, pollDelay, reduce, spanIn, spanText, START, viewNamed, type Action, type State } from "../../src/app/state";
import { analysing, done, entry, list } from "../recordings";

const A = entry("r", "a");
const B = entry("r", "b");

/** The state after these events, from nothing. */
function after(...actions: readonly Action[]): State {
  return actions.reduce(reduce, START);
}

const runs = (...entries: readonly RunEntry[]): Action => ({ type: "runs", list: list(...entries) });
const choose = (key: string): Action => ({ type: "choose", key, remembered: undefined });
const failed = (at: number): Action => ({ type: "failed", at, message: "no" });

test("the first recording is chosen when nothing else was", () => {
  assert.equal(after(runs(A, B)).chosen, keyOf(A));
});

test("a choice outlives a recording that moves above it, and a scan that hands out new ids", () => {
  const before = after(runs(B));
  const moved = reduce(before, runs(A, { ...B, id: "another" }));
  assert.equal(moved.chosen, keyOf(B));
  assert.equal(chosenEntry(moved)?.id, "another");
});

test("what the URL names is chosen, even before the list has it", () => {
  const state = reduce({ ...START, chosen: keyOf(B) }, { type: "runs", list: { ...list(), state: "scanning" } });
  assert.equal(chosenEntry(state), undefined);
  assert.ok(!hasVanished(state), "the scan is not over");
  assert.equal(chosenEntry(reduce(state, runs(A, B))), B);
});

test("a recording that the finished scan does not have has vanished", () => {
  assert.ok(hasVanished(after(runs(A, B), choose(keyOf(B)), runs(A))));
  assert.ok(!hasVanished(after(runs(A))));
});

test("an answer about a recording that is no longer the chosen one is dropped", () => {
  const state = after(runs(A, B), choose(keyOf(B)), { type: "report", key: keyOf(A), answer: done("a") });
  assert.equal(state.report, undefined);
});

test("choosing another recording takes the old report off the page at once", () => {
  const state = after(runs(A, B), { type: "report", key: keyOf(A), answer: done("a") }, choose(keyOf(B)));
  assert.equal(state.report, undefined);
  assert.equal(state.answer, undefined);
});

test("a remembered report is there at once", () => {
  const state = after(runs(A, B), { type: "choose", key: keyOf(B), remembered: done("b") });
  assert.equal(state.report?.source, "b");
});

test("a recording that is analysed again keeps its last report meanwhile", () => {
  const state = after(
    runs(A),
    { type: "report", key: keyOf(A), answer: done("a") },
    { type: "report", key: keyOf(A), answer: analysing("a") },
  );
  assert.equal(state.report?.source, "a");
  assert.equal(state.answer?.state, "analysing");
});

test("an unchanged answer leaves the state the same object, so nothing is drawn", () => {
  const state = after(runs(A), { type: "report", key: keyOf(A), answer: done("a") });
  assert.equal(reduce(state, { type: "runs", list: state.list! }), state);
  assert.equal(reduce(state, { type: "report", key: keyOf(A), answer: state.answer! }), state);
  assert.equal(reduce(state, { type: "polled" }), state);
});

test("a failure keeps the data, and since when; the next answer ends it", () => {
  const state = after(runs(A), failed(1000), failed(2000));
  assert.deepEqual(state.failure, { since: 1000, count: 2, message: "no" });
  assert.equal(state.list?.runs[0], A);
  assert.equal(reduce(state, { type: "polled" }).failure, undefined);
});

test("polling is quick while the server works and slow when all is done", () => {
  assert.equal(pollDelay(after()), 1_000);
  assert.equal(pollDelay(after({ type: "runs", list: { ...list(), state: "scanning" } })), 1_000);
  assert.equal(pollDelay(after(runs(A, { ...B, state: "waiting" }))), 1_000);
  assert.equal(pollDelay(after(runs(A), { type: "report", key: keyOf(A), answer: analysing("a") })), 1_000);
  assert.equal(pollDelay(after(runs(A), { type: "report", key: keyOf(A), answer: done("a") })), 30_000);
  assert.equal(pollDelay(after(runs())), 30_000);
});

test("each failure doubles the wait, up to the idle one", () => {
  const delays = [1, 2, 3, 4, 5, 6, 60].map((count) => pollDelay({ ...START, failure: { since: 0, count, message: "" } }));
  assert.deepEqual(delays, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test("recordings are grouped by run in the server's order", () => {
  const shown = groups([entry("x", "1"), entry("y", "2"), entry("x", "3")], "");
  assert.deepEqual(shown.map(({ run, entries }) => [run, entries.map(({ source }) => source)]), [["x", ["1", "3"]], ["y", ["2"]]]);
});

test("the filter wants every word, in name or verdict, in any case", () => {
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "", title: "Waiting for data" };
  const all = [entry("resnet/slow", "a", { verdict }), entry("resnet/fast", "b"), entry("bert", "c", { health: "incomplete" })];
  const found = (filter: string) => groups(all, filter).flatMap(({ entries }) => entries.map(({ source }) => source));
  assert.deepEqual(found("RESNET"), ["a", "b"]);
  assert.deepEqual(found("resnet waiting"), ["a"]);
  assert.deepEqual(found("incomplete"), ["c"]);
  assert.deepEqual(found("resnet incomplete"), []);
});

test("a look at evidence opens the timeline, and another recording forgets it", () => {
  const focus = { begin: 5, end: 9, label: "Idle" };
  const looking = after(runs(A, B), { type: "look", focus });
  assert.deepEqual([looking.view, looking.focus], ["timeline", focus]);
  assert.equal(reduce(looking, choose(keyOf(B))).focus, undefined);
  assert.equal(reduce(looking, choose(keyOf(B))).view, "timeline");
});

test("a stretch of time is read from the address, and nonsense is not", () => {
  assert.deepEqual(spanIn(spanText({ begin: 1419116235798217, end: 1419116235852418 })), { begin: 1419116235798217, end: 1419116235852418 });
  for (const text of ["", "5", "9-5", "5-5", "-5-9", "a-b", "1e3-1e4", "5-9-7"]) assert.equal(spanIn(text), undefined, text);
  assert.deepEqual(focusIn("5-9", undefined), { begin: 5, end: 9, label: "", shown: { begin: 5, end: 9 } });
  assert.deepEqual(focusIn("1-20", "5-9"), { begin: 5, end: 9, label: "Evidence", shown: { begin: 1, end: 20 } });
  assert.equal(focusIn(undefined, undefined), undefined);
  assert.equal(viewNamed("nonsense"), "diagnosis");
});

test("where time is looked at depends on the recording: telemetry has readings and no timeline", () => {
  const focus = { begin: 1, end: 2, label: "Evidence" };
  const heard = list(entry("r", "events", { evidence_source: "telemetry" }));
  assert.equal(after({ type: "runs", list: heard }, { type: "look", focus }).view, "live");
  assert.equal(after({ type: "runs", list: list(A) }, { type: "look", focus }).view, "timeline");
});
