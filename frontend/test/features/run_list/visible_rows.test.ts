import assert from "node:assert/strict";
import { test } from "node:test";
import { ENTRY_HEIGHT, HEADER_HEIGHT, rowsOf, scrollTarget, visibleRows } from "../../../src/features/run_list/visible_rows";
import { sectionsOf, trainingsOf } from "../../../src/shared/run/trainings";
import { entry, list } from "../../recordings";

const many = rowsOf(sectionsOf(trainingsOf(list(...Array.from({ length: 3_000 }, (_, n) => entry(`sweep ${n >> 3}/${n}`, "t.json")))), ""));

test("of thousands of rows only those near the visible part are drawn", () => {
  const drawn = visibleRows(many, 50_000, 800);
  assert.ok(drawn.length < 40, `${drawn.length}`);
  assert.ok(drawn[0]!.top <= 50_000 && drawn[drawn.length - 1]!.top + ENTRY_HEIGHT >= 50_800);
  assert.equal(many.height, 3_000 * ENTRY_HEIGHT + 375 * HEADER_HEIGHT);
});

test("a chosen row becomes visible with as little scrolling as possible", () => {
  const key = many.keys[100]!;
  const to = scrollTarget(many, key, 0, 800);
  assert.ok(visibleRows(many, to, 800).some((row) => row.is === "entry" && row.key === key));
  assert.equal(scrollTarget(many, key, to, 800), to);
  const next = many.rows.find((row) => row.is === "entry" && row.key === many.keys[101])!;
  assert.ok(next.top + ENTRY_HEIGHT <= to + 800 + HEADER_HEIGHT, "its neighbour is visible as well");
  assert.equal(scrollTarget(many, many.keys[0]!, to, 800), 0);
  assert.equal(scrollTarget(many, "not there", 77, 800), 77);
});
