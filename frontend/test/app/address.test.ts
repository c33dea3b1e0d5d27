import assert from "node:assert/strict";
import { test } from "node:test";
import { PARAMETERS, withAddress, writeAddress } from "../../src/app/address";
import { START, type State } from "../../src/app/state";
import type { UrlKey } from "../../src/shared/page/host";

const FULL: State = {
  ...START,
  chosen: "r/a",
  view: "compare",
  focus: { begin: 5, end: 9, label: "Evidence" },
  visible: { begin: 1, end: 20 },
  baseline: "r/b,c",
  series: ["r/a", "r/b,c"],
  conditions: "device=H200&workers=4",
  tree: "by=line&find=loss",
  overview: "words=slow",
};

/** An address as a map, with its reader and its writer. */
function address(entries: Iterable<readonly [UrlKey, string]> = []) {
  const values = new Map<UrlKey, string>(entries);
  return {
    values,
    valueOf: (name: UrlKey) => values.get(name) || undefined,
    put: (name: UrlKey, text: string) => void values.set(name, text),
  };
}

test("the address restores every parameter that was written", () => {
  const { values, valueOf, put } = address();
  writeAddress(FULL, valueOf, put);
  assert.deepEqual([...values.keys()], PARAMETERS.map(({ name }) => name));
  assert.ok([...values.values()].every((text) => text !== ""), "FULL sets every parameter");
  assert.deepEqual(withAddress(START, valueOf), FULL);
});

test("an address that matches the state changes nothing", () => {
  const { valueOf, put } = address();
  const state = { ...FULL, visible: { begin: 1.25, end: 20.5 } }; // written as whole ns
  writeAddress(state, valueOf, put);
  assert.equal(withAddress(state, valueOf), state);
  assert.equal(withAddress(START, () => undefined), START);
});

test("a parameter that is gone from the address is reset, but the recording stays", () => {
  assert.deepEqual(withAddress(FULL, () => undefined), { ...START, chosen: "r/a" });
});

test("another range or mark in the address is followed", () => {
  const { values, valueOf, put } = address();
  writeAddress(FULL, valueOf, put);
  values.set("at", "2-30").set("mark", "7-8");
  const { visible, focus } = withAddress(FULL, valueOf);
  assert.deepEqual([visible, focus], [{ begin: 2, end: 30 }, { begin: 7, end: 8, label: "Evidence" }]);
});

test("another recording in the address resets what belongs to the previous one, unless the address contains it", () => {
  const next = withAddress({ ...FULL, view: "timeline" }, address([["run", "r/x"], ["view", "timeline"], ["at", "3-4"]]).valueOf);
  assert.deepEqual([next.chosen, next.visible, next.focus], ["r/x", { begin: 3, end: 4 }, undefined]);
});

test("invalid values are ignored", () => {
  const { valueOf } = address([["view", "nonsense"], ["at", "9-5"], ["row", "one"]]);
  assert.deepEqual(withAddress(START, valueOf), START);
});

test("a new place is one new history entry, and a detail belongs to the current one", () => {
  const entries = (before: State, after: State) => {
    const { valueOf, put } = address();
    writeAddress(before, valueOf, put);
    const written: string[] = [];
    writeAddress(after, valueOf, (name, _, entry) => written.push(`${name} ${entry}`));
    return written;
  };
  assert.deepEqual(entries(FULL, FULL), []);
  assert.deepEqual(entries(FULL, { ...FULL, view: "memory" }), ["view new"]);
  assert.deepEqual(entries(FULL, { ...FULL, visible: { begin: 2, end: 9 } }), ["at same"]);
  assert.deepEqual(entries(FULL, { ...START, chosen: "r/x" }), ["run new", "view same", "at same", "mark same", "with same", "row same", "if same", "tree same", "all same"]);
  assert.deepEqual(entries(FULL, { ...FULL, overview: "words=slower" }), ["all same"]);
  assert.deepEqual(entries(START, { ...START, overview: "all" }), ["all new"]);
  const { visible: _, ...zoomedOut } = FULL;
  assert.deepEqual(entries(FULL, { ...zoomedOut, baseline: "r/c" }), ["at new", "with same"]);
});
