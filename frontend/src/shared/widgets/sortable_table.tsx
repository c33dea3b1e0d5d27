// A table that is sorted by a click on a column's head, searched, and shown in portions.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../text/format";
import { reordered, searched, sorted, type Order } from "./sorting";

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly figure: boolean;
  readonly value: (row: T) => number | string | undefined;
  readonly cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  readonly caption: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[]; // the first one names the row
  readonly first: Order;
  readonly words?: (row: T) => string; // what a search looks at; without it there is no search
  readonly note?: ComponentChildren;
}

const PORTION = 25;
const SEARCH_FROM = 9;

export function Sortable<T>({ caption, rows, columns, first, words, note }: Props<T>) {
  const [order, setOrder] = useState(first);
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(PORTION);
  const found = useMemo(() => (words ? searched(rows, words, search) : rows), [rows, search]);
  const column = columns.find(({ key }) => key === order.by);
  const inOrder = useMemo(() => (column ? sorted(found, column.value, order.down) : found), [found, order]);
  return (
    <section class="sortable">
      <header>
        <h2>{caption}</h2>
        {words && rows.length >= SEARCH_FROM && (
          <input
            type="search"
            placeholder="Search"
            aria-label={`Search in: ${caption}`}
            value={search}
            onInput={(event) => (setSearch(event.currentTarget.value), setShown(PORTION))}
          />
        )}
        {words && (
          <span class="muted" role="status">
            {search ? `${count(found.length)} of ${count(rows.length)}` : count(rows.length)}
          </span>
        )}
      </header>
      <div class="scrolled" role="region" aria-label={caption} tabIndex={0}>
        <table aria-label={caption}>
          <thead>
            <tr>
              {columns.map(({ key, title, hint, figure }) => (
                <th
                  key={key}
                  scope="col"
                  class={figure ? "figure" : undefined}
                  aria-sort={order.by !== key ? "none" : order.down ? "descending" : "ascending"}
                >
                  <button type="button" title={hint} onClick={() => setOrder(reordered(order, key, figure))}>
                    {title}
                    <span class="arrow" aria-hidden="true">
                      {order.by !== key ? "" : order.down ? "↓" : "↑"}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {inOrder.slice(0, shown).map((row, place) => (
              <tr key={place}>
                {columns.map(({ key, figure, cell }, at) =>
                  at === 0 ? (
                    <th key={key} scope="row">
                      {cell(row)}
                    </th>
                  ) : (
                    <td key={key} class={figure ? "figure" : undefined}>
                      {cell(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {inOrder.length === 0 && <p class="muted">Nothing matches this search.</p>}
      <footer>
        {inOrder.length > shown && (
          <button type="button" onClick={() => setShown(shown + 4 * PORTION)}>
            Show {count(Math.min(4 * PORTION, inOrder.length - shown))} more
          </button>
        )}
        {note}
      </footer>
    </section>
  );
}
