import assert from "node:assert/strict";
import { test } from "node:test";
import type { Memory, MemorySite } from "../../../src/shared/report";
import { partChanges, placeChanges } from "../../../src/shared/widgets/memory_changes";

const site = (operator: string, bytes: number, others = 0): MemorySite => ({ kind: "activations", bytes, blocks: 1, operator, module: "", file: "", line: 0, function: "", path: [], others });

function memory(parts: Readonly<Record<string, number>>, sites: readonly MemorySite[] = []): Memory {
  const rows = Object.entries(parts).map(([kind, bytes]) => ({ kind, bytes, share: 0, title: kind.toUpperCase() }));
  const peak_bytes = rows.reduce((sum, { bytes }) => sum + bytes, 0);
  return { peak_bytes, parts: rows, evidence_source: "trace", kind: "cpu", estimated_bytes: 0, sites, findings: [], missing: "", forecasts: [], lifetimes: [] };
}

test("categories of both sides are compared, the largest change first", () => {
  const rows = partChanges(memory({ activations: 10, gradients: 5 }), memory({ activations: 12, optimizer: 7 }));
  assert.deepEqual(rows.map(({ title, a, b }) => [title, a, b]), [["OPTIMIZER", 0, 7], ["GRADIENTS", 5, 0], ["ACTIVATIONS", 10, 12]]);
});

test("places with a noticeable change are listed, without the sum of the others", () => {
  const a = memory({ activations: 1000 }, [site("aten::mm", 500), site("aten::mm", 100), site("aten::add", 300), site("", 100, 4)]);
  const b = memory({ activations: 1000 }, [site("aten::mm", 500), site("aten::add", 305), site("aten::cat", 195)]);
  assert.deepEqual(placeChanges(a, b).map(({ title, a, b }) => [title, a, b]), [["aten::cat", 0, 195], ["aten::mm", 600, 500]]);
});
