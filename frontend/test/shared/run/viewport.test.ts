import assert from "node:assert/strict";
import { test } from "node:test";
import { around, CLOSEST_NS, kept, lengthOf, moved, pressed, ticks, zoomed } from "../../../src/shared/run/viewport";

const whole = { begin: 1_000, end: 101_000 };
const span = { begin: 41_000, end: 51_000 };

test("what is seen stays within the recording and never closer than there is anything to see", () => {
  assert.deepEqual(kept({ begin: -5_000, end: 5_000 }, whole), { begin: 1_000, end: 11_000 });
  assert.deepEqual(kept({ begin: 99_000, end: 109_000 }, whole), { begin: 91_000, end: 101_000 });
  assert.deepEqual(kept({ begin: -1e9, end: 1e9 }, whole), whole);
  assert.equal(lengthOf(kept({ begin: 50_000, end: 50_001 }, whole)), CLOSEST_NS);
});

test("zooming keeps the time under the pointer where it is", () => {
  const closer = zoomed(span, 0.5, 0.25, whole);
  assert.equal(lengthOf(closer), 5_000);
  assert.equal(closer.begin + 0.25 * lengthOf(closer), span.begin + 0.25 * lengthOf(span));
  assert.deepEqual(zoomed(span, 1e9, 0.5, whole), whole);
});

test("moving goes by parts of what is seen and stops at the ends", () => {
  assert.deepEqual(moved(span, 0.5, whole), { begin: 46_000, end: 56_000 });
  assert.deepEqual(moved(span, 100, whole), { begin: 91_000, end: 101_000 });
});

test("an occurrence is shown with its surroundings", () => {
  const shown = around({ begin: 45_000, end: 47_000 }, whole);
  assert.deepEqual(shown, { begin: 42_000, end: 50_000 });
});

test("keys move, and other keys are left to the page", () => {
  assert.deepEqual(pressed("0", span, whole), whole);
  assert.deepEqual(pressed("ArrowRight", span, whole), { begin: 43_000, end: 53_000 });
  assert.deepEqual(pressed("End", span, whole), { begin: 91_000, end: 101_000 });
  assert.ok(lengthOf(pressed("+", span, whole)!) < lengthOf(span));
  assert.equal(pressed("Tab", span, whole), undefined);
});

test("the ruler is marked at round numbers from the window's begin", () => {
  const marks = ticks({ begin: 41_000, end: 51_000 }, 1_000, 5).map((mark) => mark - 1_000);
  assert.deepEqual(marks, [40_000, 42_000, 44_000, 46_000, 48_000, 50_000]);
  assert.ok(ticks({ begin: 0, end: 1e18 }, 0, 8).length <= 16);
});
