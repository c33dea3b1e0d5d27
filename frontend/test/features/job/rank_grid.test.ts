import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAfterKey, cellAt, cellText, colourOfRank, gridOf, measuresOf, scaleOf } from "../../../src/features/job/rank_grid";
import { labelOf } from "../../../src/features/job/words";
import { job, ranks } from "./jobs";

const range = (count: number) => Array.from({ length: count }, (_, number) => number);

test("thousands of ranks fit the width, and lines hold whole hosts", () => {
  for (const [count, width] of [[8, 340], [1024, 340], [1024, 900], [10_000, 900]] as const) {
    const grid = gridOf(ranks(count, { host: range(count).map((rank) => Math.floor(rank / 4) + 1) }), [], width);
    assert.equal(grid.cells.length, count);
    assert.ok(grid.cells.every(({ x }) => x + grid.size <= width + 1), `${count} at ${width}`);
    assert.equal(grid.columns % 4, 0);
    assert.ok(grid.height < 1200);
  }
});

test("missing ranks have a cell at their place", () => {
  const grid = gridOf({ ...ranks(3), rank: [0, 1, 3] }, [2], 500);
  assert.deepEqual(grid.cells.map(({ rank, row }) => [rank, row]), [[0, 0], [1, 1], [2, undefined], [3, 2]]);
  assert.equal(cellText(grid.cells[2]!, measuresOf(ranks(3), labelOf)[0]!, ranks(3), job(), labelOf), "Rank 2: no usable recording");
});

test("stages are sections", () => {
  const grid = gridOf(ranks(8, { stage: [0, 1, 0, 1, 0, 1, 0, 1] }), [8], 500);
  assert.deepEqual(grid.sections.map(({ title }) => title), ["Stage 0", "Stage 1", "Not recorded"]);
  assert.deepEqual(grid.cells.map(({ rank }) => rank), [0, 2, 4, 6, 1, 3, 5, 7, 8]);
});

test("each key moves to a neighbour, also between sections", () => {
  const grid = gridOf(ranks(1024), [], 340);
  assert.equal(cellAfterKey(grid, "ArrowRight", 0), 1);
  assert.equal(cellAfterKey(grid, "ArrowDown", 0), grid.columns);
  assert.equal(cellAfterKey(grid, "ArrowUp", grid.columns + 3), 3);
  assert.equal(cellAfterKey(grid, "ArrowLeft", 0), 0);
  assert.equal(cellAfterKey(grid, "End", 0), 1023);
  assert.equal(cellAfterKey(grid, "x", 0), undefined);
  const staged = gridOf(ranks(6, { stage: [0, 0, 0, 1, 1, 1] }), [], 500);
  assert.equal(cellAfterKey(staged, "ArrowDown", 1), 4);
  assert.equal(cellAfterKey(staged, "ArrowUp", 5), 2);
});

test("the cell under the pointer is found", () => {
  const grid = gridOf(ranks(100), [], 340);
  const cell = grid.cells[57]!;
  assert.equal(cellAt(grid, cell.x + 1, cell.y + 1), cell);
  assert.equal(cellAt(grid, -1, 0), undefined);
});

test("the colour follows the measure; small differences stay pale", () => {
  const table = ranks(4, { excess_share: [0, 0.001, 0.3, 0.15] });
  const [cost] = measuresOf(table, labelOf);
  assert.equal(cost?.key, "excess");
  assert.deepEqual([0, 1, 2, 3].map((row) => colourOfRank(cost!, table, row, scaleOf(cost!))[1]), [0, 0.001 / 0.3, 1, 0.5]);
  assert.equal(scaleOf({ ...cost!, shares: [0, 0.001] }), 0.02);
});

test("a table without pairs has the regimes only", () => {
  const keys = measuresOf(ranks(4), labelOf).map(({ key }) => key);
  assert.deepEqual(keys, ["regime", "share compute", "share communication"]);
});

test("the text of a cell says place, value and cause", () => {
  const table = ranks(4, { excess_share: [0, 0, 0.3, 0], host: [1, 1, 2, 2] });
  const cell = gridOf(table, [], 500).cells[2]!;
  assert.equal(
    cellText(cell, measuresOf(table, labelOf)[0]!, table, job(), labelOf).replaceAll("\u00a0", " "),
    "Rank 2, host 2. Cost: own work beyond that of its peers, 30 % of the step. A rank waits for its data",
  );
});
