// The list of trainings as rows of fixed height, of which only those near the visible part are drawn. Pure.
import { keyOf, type Key } from "../../shared/run/keys";
import type { Section, TrainingEntry } from "../../shared/run/trainings";

export const HEADER_HEIGHT = 34;
export const ENTRY_HEIGHT = 54;
const MARGIN = 300; // px that are drawn above and below the visible part

export type Row =
  | { readonly is: "header"; readonly folder: string; readonly top: number }
  | { readonly is: "entry"; readonly entry: TrainingEntry; readonly key: Key; readonly top: number; readonly index: number };

export interface Rows {
  readonly rows: readonly Row[];
  readonly keys: readonly Key[];
  readonly height: number;
}

export function rowsOf(sections: readonly Section[]): Rows {
  const rows: Row[] = [];
  const keys: Key[] = [];
  let top = 0;
  for (const { folder, entries } of sections) {
    if (folder !== "") {
      rows.push({ is: "header", folder, top });
      top += HEADER_HEIGHT;
    }
    for (const entry of entries) {
      const key = keyOf(entry);
      rows.push({ is: "entry", entry, key, top, index: keys.length });
      keys.push(key);
      top += ENTRY_HEIGHT;
    }
  }
  return { rows, keys, height: top };
}

/** The rows to draw if the range [from, from + height) px is visible. */
export function visibleRows({ rows }: Rows, from: number, height: number): readonly Row[] {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top + ENTRY_HEIGHT < from - MARGIN) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < rows.length && rows[end]!.top < from + height + MARGIN) end++;
  return rows.slice(low, end);
}

/** The scroll position nearest to `from` at which the row and its neighbours are visible. */
export function scrollTarget({ rows }: Rows, key: Key, from: number, height: number): number {
  const row = rows.find((each) => each.is === "entry" && each.key === key);
  if (!row) return from;
  if (row.top - HEADER_HEIGHT < from) return Math.max(0, row.top - HEADER_HEIGHT);
  return row.top + 2 * ENTRY_HEIGHT > from + height ? row.top + 2 * ENTRY_HEIGHT - height : from;
}
