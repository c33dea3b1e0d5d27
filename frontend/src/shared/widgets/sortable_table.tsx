// A table with sortable columns, a search, and a limit on the rows shown at first.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../text/format";
import { reordered, searched, sorted, type Order } from "./sorting";
import { useFrames } from "./use_frames";

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly figure: boolean;
  /** Left out if no row has a value. */
  readonly optional?: boolean;
  readonly value: (row: T) => number | string | undefined;
  readonly cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  readonly caption: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[]; // the first one names the row
  readonly initial?: Order; // by the first column without it
  /** The order, if it is kept elsewhere, for example in the address. `inOrder`: the rows come in it. */
  readonly control?: { readonly order: Order; readonly setOrder: (order: Order) => void; readonly inOrder?: boolean };
  readonly searchText?: (row: T) => string; // without it there is no search
  readonly note?: ComponentChildren;
  readonly class?: string;
}

const PAGE_SIZE = 25;
const MIN_ROWS_FOR_SEARCH = 9;

export function SortableTable<T>({ caption, rows, columns: all, initial, control, searchText, note, class: ownClass = "" }: Props<T>) {
  const [ownOrder, setOwnOrder] = useState(initial ?? { by: all[0]?.key ?? "", descending: false });
  const columns = useMemo(() => all.filter(({ optional, value }) => !optional || rows.some((row) => value(row) !== undefined)), [all, rows]);
  const { order, setOrder } = control ?? { order: ownOrder, setOrder: setOwnOrder };
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(PAGE_SIZE);
  const matches = useMemo(() => (searchText ? searched(rows, searchText, search) : rows), [rows, search]);
  const column = columns.find(({ key }) => key === order.by);
  const sortedRows = useMemo(() => (column && !control?.inOrder ? sorted(matches, column.value, order.descending) : matches), [matches, order]);
  const drawn = useFrames(useMemo(() => sortedRows.slice(0, shown), [sortedRows, shown]));
  return (
    <section class={`sortable ${ownClass}`}>
      <header>
        <h2>{caption}</h2>
        {searchText && rows.length >= MIN_ROWS_FOR_SEARCH && (
          <input
            type="search"
            placeholder="Search"
            aria-label={`Search: ${caption}`}
            value={search}
            onInput={(event) => (setSearch(event.currentTarget.value), setShown(PAGE_SIZE))}
          />
        )}
        {searchText && (
          <span class="muted" role="status">
            {search ? `${count(matches.length)} of ${count(rows.length)}` : count(rows.length)}
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
                  aria-sort={order.by !== key ? "none" : order.descending ? "descending" : "ascending"}
                >
                  <button type="button" title={hint} onClick={() => setOrder(reordered(order, key, figure))}>
                    {title}
                    <span class="arrow" aria-hidden="true">
                      {order.by !== key ? "" : order.descending ? "↓" : "↑"}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {drawn.map((row, index) => (
              <Row key={index} row={row} columns={columns} />
            ))}
          </tbody>
        </table>
      </div>
      {sortedRows.length === 0 && <p class="muted">Nothing matches this search.</p>}
      <footer>
        {sortedRows.length > shown && (
          <button type="button" onClick={() => setShown(shown + 4 * PAGE_SIZE)}>
            Show {count(Math.min(4 * PAGE_SIZE, sortedRows.length - shown))} more
          </button>
        )}
        {note}
      </footer>
    </section>
  );
}

/** A row. One that stays at its place is not drawn again: of thousands of rows, most actions change only some. */
function Row<T>({ row, columns }: Pick<Props<T>, "columns"> & { readonly row: T }) {
  return useMemo(
    () => (
      <tr>
        {columns.map(({ key, title, figure, value, cell }, column) =>
          column === 0 ? (
            <th key={key} scope="row">
              {cell(row)}
            </th>
          ) : (
            <td key={key} class={!figure ? undefined : value(row) === undefined ? "figure unknown" : "figure"} data-column={key} data-title={title}>
              {cell(row)}
            </td>
          ),
        )}
      </tr>
    ),
    [row, columns],
  );
}
