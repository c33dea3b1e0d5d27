// Sorts and searches the rows of a table. Pure.

export interface Order {
  readonly by: string; // the column's key
  readonly descending: boolean;
}

/** The order after a click on a column's header: numbers start descending, text ascending. */
export function reordered(order: Order, by: string, figure: boolean): Order {
  return order.by === by ? { by, descending: !order.descending } : { by, descending: figure };
}

type Value = number | string | undefined;

const ALPHABET = new Intl.Collator("en");

/** Sorts the rows (stable). Rows without a value come last in both directions. */
export function sorted<T>(rows: readonly T[], value: (row: T) => Value, descending: boolean): readonly T[] {
  const sign = descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: value(row) })); // a value may be costly
  keyed.sort(({ key: x }, { key: y }) => {
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    if (typeof x === "string" || typeof y === "string") return sign * ALPHABET.compare(String(x), String(y));
    return sign * (x - y);
  });
  return keyed.map(({ row }) => row);
}

/** The rows whose text contains every word of the search. */
export function searched<T>(rows: readonly T[], text: (row: T) => string, search: string): readonly T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => words.every((word) => text(row).toLowerCase().includes(word)));
}
