import assert from "node:assert/strict";
import { test } from "node:test";
import { clamped, lengthOf, moved, SHORTEST_NS, spanAfterKey, ticks, withContext, zoomed } from "../../../src/shared/run/viewport";

const whole = { begin: 1_000, end: 101_000 };
const span = { begin: 41_000, end: 51_000 };

test("the visible range stays within the recording and above the shortest length", () => {
  assert.deepEqual(clamped({ begin: -5_000, end: 5_000 }, whole), { begin: 1_000, end: 11_000 });
  assert.deepEqual(clamped({ begin: 99_000, end: 109_000 }, whole), { begin: 91_000, end: 101_000 });
  assert.deepEqual(clamped({ begin: -1e9, end: 1e9 }, whole), whole);
  assert.equal(lengthOf(clamped({ begin: 50_000, end: 50_001 }, whole)), SHORTEST_NS);
});

test("zooming keeps the time under the pointer where it is", () => {
  const closer = zoomed(span, 0.5, 0.25, whole);
  assert.equal(lengthOf(closer), 5_000);
  assert.equal(closer.begin + 0.25 * lengthOf(closer), span.begin + 0.25 * lengthOf(span));
  assert.deepEqual(zoomed(span, 1e9, 0.5, whole), whole);
});

test("moving is relative to the visible range and stops at the ends", () => {
  assert.deepEqual(moved(span, 0.5, whole), { begin: 46_000, end: 56_000 });
  assert.deepEqual(moved(span, 100, whole), { begin: 91_000, end: 101_000 });
});

test("an occurrence is shown with context", () => {
  const shown = withContext({ begin: 45_000, end: 47_000 }, whole);
  assert.deepEqual(shown, { begin: 42_000, end: 50_000 });
});

test("keys move the range, and other keys are left to the page", () => {
  assert.deepEqual(spanAfterKey("0", span, whole), whole);
  assert.deepEqual(spanAfterKey("ArrowRight", span, whole), { begin: 43_000, end: 53_000 });
  assert.deepEqual(spanAfterKey("End", span, whole), { begin: 91_000, end: 101_000 });
  assert.ok(lengthOf(spanAfterKey("+", span, whole)!) < lengthOf(span));
  assert.equal(spanAfterKey("Tab", span, whole), undefined);
});

test("ticks are round numbers relative to the start of the window", () => {
  const marks = ticks({ begin: 41_000, end: 51_000 }, 1_000, 5).map((mark) => mark - 1_000);
  assert.deepEqual(marks, [40_000, 42_000, 44_000, 46_000, 48_000, 50_000]);
  assert.ok(ticks({ begin: 0, end: 1e18 }, 0, 8).length <= 16);
});
