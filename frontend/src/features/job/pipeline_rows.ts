// The spans of a pipeline by rank.
import type { PipelineTable, RankTable } from "../../shared/report";
import { shortShare } from "../../shared/text/format";

export interface Span {
  readonly begin: number;
  readonly end: number;
  readonly phase: string;
  readonly microbatch: number;
  readonly critical: boolean;
}

export interface PipelineRow {
  readonly rank: number;
  readonly stage: number | undefined;
  readonly spans: readonly Span[];
}

/** The rows in the order of the table, and the time from the first begin to the last end in ns. */
export function rowsOf(pipeline: PipelineTable, table: RankTable): { readonly rows: readonly PipelineRow[]; readonly length: number } {
  const spans = new Map<number, Span[]>();
  pipeline.rank.forEach((rank, index) => {
    const mine = spans.get(rank) ?? [];
    spans.set(rank, mine);
    mine.push({
      begin: pipeline.begin_ns[index] ?? 0,
      end: pipeline.end_ns[index] ?? 0,
      phase: pipeline.phase[index] ?? "other",
      microbatch: pipeline.microbatch[index] ?? 0,
      critical: pipeline.critical[index] ?? false,
    });
  });
  const rows = [...spans].map(([rank, mine]) => ({ rank, stage: table.stage[table.rank.indexOf(rank)], spans: mine }));
  return { rows, length: pipeline.end_ns.reduce((last, end) => Math.max(last, end), 1) };
}

/** "Works 60 % of the step in 9 passes, waits 40 %; 3 passes on the critical path". */
export function describeRow({ spans }: PipelineRow, length: number): string {
  const busy = spans.reduce((sum, { begin, end }) => sum + end - begin, 0) / length;
  const passes = (some: readonly Span[]) => `${some.length} ${some.length === 1 ? "pass" : "passes"}`;
  const critical = spans.filter((span) => span.critical);
  const path = critical.length > 0 ? `; ${passes(critical)} on the critical path` : "";
  return `Works ${shortShare(busy)} of the step in ${passes(spans)}, waits ${shortShare(Math.max(1 - busy, 0))}${path}`;
}
