// How much slower the job is because of each stage and operation, and of the ranks with the most time beyond their peers'.
import type { Job, Slowdown } from "../../shared/report";
import { factor as times } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";

const COLUMNS: readonly Column<Slowdown>[] = [
  { key: "what", title: "What", figure: false, value: nameOf, cell: nameOf },
  { key: "factor", title: "Slower", hint: "Simulated time with only this as recorded / with everything like its peers", figure: true, value: ({ factor }) => factor, cell: (row) => times(row.factor) },
];

export function Slowdowns({ job }: { job: Job }) {
  if (job.slowdowns.length === 0) return null;
  return (
    <SortableTable
      caption="Slower because of"
      rows={job.slowdowns}
      columns={COLUMNS}
      initial={{ by: "factor", descending: true }}
      note={<span class="muted">Everything is simulated like its peers, except one rank, stage or operation at a time. The factors do not add up.</span>}
    />
  );
}

/** "Rank 3", "Stage 1", "All reduce". */
export function nameOf({ of, name }: Slowdown): string {
  return of === "operation" ? title(name) : `${title(of)} ${name}`;
}
