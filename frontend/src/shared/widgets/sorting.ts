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
  const values = rows.map(value); // may be costly
  const keys = values.some((each) => typeof each === "string") ? inAlphabet(values) : (values as readonly (number | undefined)[]);
  const keyed = rows.map((row, index) => ({ row, key: keys[index] }));
  keyed.sort(({ key: x }, { key: y }) => (x === undefined || y === undefined ? Number(x === undefined) - Number(y === undefined) : sign * (x - y)));
  return keyed.map(({ row }) => row);
}

/** The place of each value in the alphabet. Each text is compared once, although many rows may have it. */
function inAlphabet(values: readonly Value[]): readonly (number | undefined)[] {
  const texts = [...new Set(values.filter((value) => value !== undefined).map(String))].sort(ALPHABET.compare);
  const places = new Map<string, number>();
  texts.forEach((text, index) => places.set(text, index > 0 && ALPHABET.compare(texts[index - 1]!, text) === 0 ? places.get(texts[index - 1]!)! : index));
  return values.map((value) => (value === undefined ? undefined : places.get(String(value))));
}

/** The rows whose text contains every word of the search. */
export function searched<T>(rows: readonly T[], text: (row: T) => string, search: string): readonly T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => words.every((word) => text(row).toLowerCase().includes(word)));
}
