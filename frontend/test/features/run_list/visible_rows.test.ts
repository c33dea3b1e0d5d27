import assert from "node:assert/strict";
import { test } from "node:test";
import { ENTRY_HEIGHT, HEAD_HEIGHT, near, rowsOf, scrolledTo } from "../../../src/features/run_list/visible_rows";
import { groups } from "../../../src/app/state";
import { entry } from "../../recordings";

const many = rowsOf(groups(Array.from({ length: 3_000 }, (_, n) => entry(`run ${n >> 3}`, `${n}`)), ""));

test("of thousands of rows only those near what is seen are drawn", () => {
  const drawn = near(many, 50_000, 800);
  assert.ok(drawn.length < 40, `${drawn.length}`);
  assert.ok(drawn[0]!.top <= 50_000 && drawn[drawn.length - 1]!.top + ENTRY_HEIGHT >= 50_800);
  assert.equal(many.height, 3_000 * ENTRY_HEIGHT + 375 * HEAD_HEIGHT);
});

test("a chosen row is brought into sight with as little scrolling as needed", () => {
  const key = many.keys[100]!;
  const to = scrolledTo(many, key, 0, 800);
  assert.ok(near(many, to, 800).some((row) => row.is === "entry" && row.key === key));
  assert.equal(scrolledTo(many, key, to, 800), to);
  const next = many.rows.find((row) => row.is === "entry" && row.key === many.keys[101])!;
  assert.ok(next.top + ENTRY_HEIGHT <= to + 800 + HEAD_HEIGHT, "not at the very edge, as if nothing came after it");
  assert.equal(scrolledTo(many, many.keys[0]!, to, 800), 0);
  assert.equal(scrolledTo(many, "not there", 77, 800), 77);
});
