// The list of recordings as rows of known height, of which only those near the window are drawn. Pure.
import { keyOf, type Group, type Key } from "../../app/state";
import type { RunEntry } from "../../shared/report";

export const HEAD_HEIGHT = 34;
export const ENTRY_HEIGHT = 54;
const BEYOND = 300; // px that are drawn above and below what is seen

export type Row =
  | { readonly is: "head"; readonly run: string; readonly top: number }
  | { readonly is: "entry"; readonly entry: RunEntry; readonly key: Key; readonly top: number; readonly place: number };

export interface Rows {
  readonly rows: readonly Row[];
  readonly keys: readonly Key[];
  readonly height: number;
}

export function rowsOf(groups: readonly Group[]): Rows {
  const rows: Row[] = [];
  const keys: Key[] = [];
  let top = 0;
  for (const { run, entries } of groups) {
    rows.push({ is: "head", run, top });
    top += HEAD_HEIGHT;
    for (const entry of entries) {
      const key = keyOf(entry);
      rows.push({ is: "entry", entry, key, top, place: keys.length });
      keys.push(key);
      top += ENTRY_HEIGHT;
    }
  }
  return { rows, keys, height: top };
}

/** The rows to draw where [from, from + height) px are seen. */
export function near({ rows }: Rows, from: number, height: number): readonly Row[] {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top + ENTRY_HEIGHT < from - BEYOND) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < rows.length && rows[end]!.top < from + height + BEYOND) end++;
  return rows.slice(low, end);
}

/** Where to scroll so that the row is seen, and what is next to it: as little as needed. */
export function scrolledTo({ rows }: Rows, key: Key, from: number, height: number): number {
  const row = rows.find((one) => one.is === "entry" && one.key === key);
  if (!row) return from;
  if (row.top - HEAD_HEIGHT < from) return Math.max(0, row.top - HEAD_HEIGHT);
  return row.top + 2 * ENTRY_HEIGHT > from + height ? row.top + 2 * ENTRY_HEIGHT - height : from;
}
