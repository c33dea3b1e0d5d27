// The lifetimes of the largest and the longest-lived blocks within the step of the peak.
import { memoryColourOf } from "../../shared/colours";
import type { MemoryCurve, MemoryLifetime } from "../../shared/report";
import { bytes, duration } from "../../shared/text/format";
import { placeOf } from "../../shared/text/places";
import { SortableTable } from "../../shared/widgets/sortable_table";

interface Props {
  readonly lifetimes: readonly MemoryLifetime[];
  readonly curve: MemoryCurve;
  readonly titles: ReadonlyMap<string, string>;
}

const begin = (row: MemoryLifetime) => row.begin_ns ?? 0;

export function Lifetimes({ lifetimes, curve, titles }: Props) {
  const step = curve.step_ns || 1;
  const peak = curve.times_ns[curve.peak] ?? 0;
  const end = (row: MemoryLifetime) => row.end_ns ?? step;
  const name = ({ site }: MemoryLifetime) => (site ? placeOf(site) : "");
  const kind = ({ site }: MemoryLifetime) => titles.get(site?.kind ?? "") ?? site?.kind ?? "";
  return (
    <SortableTable<MemoryLifetime>
      caption="Lifetimes of blocks in this step"
      rows={lifetimes}
      initial={{ by: "bytes", descending: true }}
      searchText={(row) => `${name(row)} ${kind(row)}`}
      columns={[
        { key: "name", title: "Place", figure: false, value: name, cell: (row) => <code class="long-name" title={name(row)}>{name(row)}</code> },
        { key: "bytes", title: "Bytes", figure: true, value: ({ site }) => site?.bytes, cell: ({ site }) => bytes(site?.bytes ?? 0) },
        { key: "begin", title: "Allocated", hint: "Since the beginning of the step", figure: true, value: (row) => row.begin_ns ?? -1, cell: (row) => (row.begin_ns === undefined ? "before" : duration(row.begin_ns)) },
        { key: "end", title: "Freed", hint: "Since the beginning of the step", figure: true, value: (row) => row.end_ns ?? step, cell: (row) => (row.end_ns === undefined ? "later" : duration(row.end_ns)) },
        { key: "length", title: "In the step", hint: "Lifetime within the step", figure: true, value: (row) => end(row) - begin(row), cell: (row) => duration(end(row) - begin(row)) },
        { key: "kind", title: "Category", figure: false, value: kind, cell: kind },
        { key: "bar", title: "Over the step", figure: false, value: begin, cell: (row) => <Bar from={begin(row) / step} to={end(row) / step} peak={peak / step} kind={row.site?.kind ?? ""} /> },
      ]}
      note={<span class="muted">The largest blocks, and of those that the step allocates and frees the longest-lived. The line marks the peak.</span>}
    />
  );
}

function Bar({ from, to, peak, kind }: { from: number; to: number; peak: number; kind: string }) {
  const percent = (value: number) => `calc(100% * ${value})`;
  return (
    <span class="lifetime" aria-hidden="true">
      <span class="alive" style={{ insetInlineStart: percent(from), width: percent(to - from), backgroundColor: memoryColourOf(kind) }} />
      <span class="at-peak" style={{ insetInlineStart: percent(peak) }} />
    </span>
  );
}
