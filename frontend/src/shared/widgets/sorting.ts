// Rows of a table in another order, and those of them that a search leaves. Pure.

export interface Order {
  readonly by: string; // the column's key
  readonly down: boolean; // the greatest first
}

/** What a click on a column's head makes of the order: figures begin with the greatest, words with the first. */
export function reordered(order: Order, by: string, figure: boolean): Order {
  return order.by === by ? { by, down: !order.down } : { by, down: figure };
}

type Value = number | string | undefined;

/** Sorted; rows without a value come last either way, and equal ones stay as they were. */
export function sorted<T>(rows: readonly T[], value: (row: T) => Value, down: boolean): readonly T[] {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    if (typeof x === "string" || typeof y === "string") return sign * String(x).localeCompare(String(y), "en");
    return sign * (x - y);
  });
}

/** The rows in whose words every word of the search occurs. */
export function searched<T>(rows: readonly T[], words: (row: T) => string, search: string): readonly T[] {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter((row) => wanted.every((word) => words(row).toLowerCase().includes(word)));
}
