import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenEntry, hasVanished, pollDelay, reduce, START, type Action, type State } from "../../src/app/state";
import type { RunEntry } from "../../src/shared/report";
import { groups } from "../../src/shared/run/groups";
import { keyOf } from "../../src/shared/run/keys";
import { analysing, done, entry, list } from "../recordings";

const A = entry("r", "a");
const B = entry("r", "b");

/** The state after these events, from nothing. */
function after(...actions: readonly Action[]): State {
  return actions.reduce(reduce, START);
}

const runs = (...entries: readonly RunEntry[]): Action => ({ type: "runs", list: list(...entries) });
const choose = (key: string): Action => ({ type: "choose", key });
const failed = (at: number): Action => ({ type: "failed", at, message: "no" });

test("the first recording is chosen when nothing else was", () => {
  assert.equal(after(runs(A, B)).chosen, keyOf(A));
});

test("a choice survives another recording at the top, and new ids", () => {
  const before = after(runs(B));
  const moved = reduce(before, runs(A, { ...B, id: "another" }));
  assert.equal(moved.chosen, keyOf(B));
  assert.equal(chosenEntry(moved)?.id, "another");
});

test("the recording of the address is chosen, even before the list contains it", () => {
  const state = reduce({ ...START, chosen: keyOf(B) }, { type: "runs", list: { ...list(), state: "scanning" } });
  assert.equal(chosenEntry(state), undefined);
  assert.ok(!hasVanished(state), "the scan is not over");
  assert.equal(chosenEntry(reduce(state, runs(A, B))), B);
});

test("a recording that the finished scan does not contain has vanished", () => {
  assert.ok(hasVanished(after(runs(A, B), choose(keyOf(B)), runs(A))));
  assert.ok(!hasVanished(after(runs(A))));
});

test("a response about a recording that is no longer chosen is dropped", () => {
  const state = after(runs(A, B), choose(keyOf(B)), { type: "report", key: keyOf(A), answer: done("a") });
  assert.equal(state.report, undefined);
});

test("choosing another recording removes the old report at once", () => {
  const state = after(runs(A, B), { type: "report", key: keyOf(A), answer: done("a") }, choose(keyOf(B)));
  assert.equal(state.report, undefined);
  assert.equal(state.answer, undefined);
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

test("an unchanged response leaves the state the same object, so nothing is drawn", () => {
  const state = after(runs(A), { type: "report", key: keyOf(A), answer: done("a") });
  assert.equal(reduce(state, { type: "runs", list: state.list! }), state);
  assert.equal(reduce(state, { type: "report", key: keyOf(A), answer: state.answer! }), state);
  assert.equal(reduce(state, { type: "polled" }), state);
});

test("a failure keeps the data and its start; the next response ends it", () => {
  const state = after(runs(A), failed(1000), failed(2000));
  assert.deepEqual(state.failure, { since: 1000, count: 2, message: "no" });
  assert.equal(state.list?.runs[0], A);
  assert.equal(reduce(state, { type: "polled" }).failure, undefined);
});

test("polling is fast while the server works and slow afterwards", () => {
  assert.equal(pollDelay(after()), 1_000);
  assert.equal(pollDelay(after({ type: "runs", list: { ...list(), state: "scanning" } })), 1_000);
  assert.equal(pollDelay(after(runs(A, { ...B, state: "waiting" }))), 1_000);
  assert.equal(pollDelay(after(runs(A), { type: "report", key: keyOf(A), answer: analysing("a") })), 1_000);
  assert.equal(pollDelay(after(runs(A), { type: "report", key: keyOf(A), answer: done("a") })), 30_000);
  assert.equal(pollDelay(after(runs())), 30_000);
});

test("each failure doubles the delay, up to the idle delay", () => {
  const delays = [1, 2, 3, 4, 5, 6, 60].map((count) => pollDelay({ ...START, failure: { since: 0, count, message: "" } }));
  assert.deepEqual(delays, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test("recordings are grouped by run in the server's order", () => {
  const shown = groups([entry("x", "1"), entry("y", "2"), entry("x", "3")], "");
  assert.deepEqual(shown.map(({ run, entries }) => [run, entries.map(({ source }) => source)]), [["x", ["1", "3"]], ["y", ["2"]]]);
});

test("the filter needs every word, in name or verdict, ignoring case", () => {
  const verdict = { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "", title: "Waiting for data", action: "" };
  const all = [entry("resnet/slow", "a", { verdict }), entry("resnet/fast", "b"), entry("bert", "c", { health: "incomplete" })];
  const found = (filter: string) => groups(all, filter).flatMap(({ entries }) => entries.map(({ source }) => source));
  assert.deepEqual(found("RESNET"), ["a", "b"]);
  assert.deepEqual(found("resnet waiting"), ["a"]);
  assert.deepEqual(found("incomplete"), ["c"]);
  assert.deepEqual(found("resnet incomplete"), []);
});

test("evidence opens the timeline at its range, and another recording resets both ranges", () => {
  const focus = { begin: 5, end: 9, label: "Idle" };
  const visible = { begin: 0, end: 100 };
  const focused = after(runs(A, B), { type: "visible", visible }, { type: "focus", focus });
  assert.deepEqual([focused.view, focused.focus, focused.visible], ["timeline", focus, undefined]);
  const other = after(runs(A, B), { type: "focus", focus }, { type: "visible", visible }, choose(keyOf(B)));
  assert.deepEqual([other.view, other.focus, other.visible], ["timeline", undefined, undefined]);
});

test("telemetry has no timeline: its ranges are shown in its own view", () => {
  const focus = { begin: 1, end: 2, label: "Evidence" };
  const telemetry = list(entry("r", "events", { evidence_source: "telemetry" }));
  assert.equal(after({ type: "runs", list: telemetry }, { type: "focus", focus }).view, "live");
  assert.equal(after({ type: "runs", list: list(A) }, { type: "focus", focus }).view, "timeline");
});

test("a view that telemetry does not have opens with the trace of the same training", () => {
  const events = entry("r", "events", { evidence_source: "telemetry" });
  const together = { ...list(events, A, B), trainings: [{ members: [0, 1], because: "more steps" }] };
  const telemetry = after({ type: "runs", list: together });
  assert.equal(telemetry.chosen, keyOf(events));
  const timeline = reduce(telemetry, { type: "view", view: "timeline" });
  assert.deepEqual([timeline.chosen, timeline.view], [keyOf(A), "timeline"]);
  const back = reduce(timeline, { type: "view", view: "live" });
  assert.deepEqual([back.chosen, back.view], [keyOf(events), "live"]);
  assert.equal(reduce(reduce(timeline, choose(keyOf(B))), choose(keyOf(events))).chosen, keyOf(A), "the view stays");
  assert.equal(reduce(reduce(timeline, { type: "view", view: "diagnosis" }), choose(keyOf(events))).chosen, keyOf(events));
  assert.equal(reduce({ ...START, chosen: keyOf(events), view: "timeline" }, { type: "runs", list: together }).chosen, keyOf(A), "of the address, too");
});
