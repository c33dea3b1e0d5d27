// Small recordings, lists and answers for the tests.
import type { Place, Report, ReportAnswer, RunEntry, RunList } from "../src/shared/report";

export function entry(run: string, source: string, fields: Partial<RunEntry> = {}): RunEntry {
  const done = { state: "done", progress: 1, health: "ok", reason: "", step_times_ns: [], witness: "trace", evidence_source: "trace", live: false, device: "", action: "" };
  return { id: `id of ${run}/${source}`, run, source, size_bytes: 1, modified_unix_ns: 0, ...done, ...fields } as RunEntry;
}

export function list(...runs: readonly RunEntry[]): RunList {
  return { state: "ready", logdir: "/runs", runs, problems: [], trainings: [] };
}

export function report(source: string): Report {
  return { schema: 2, run: "r", source, witness: "trace", evidence_source: "trace", account: [], regimes: [], findings: [], plan: [], disagreements: [], others: [], phases: [], headroom: [], operators: [], step_parts: [], broken_parts: [], job_headline: "" };
}

/** A place in the program; without fields, one of which nothing is known. */
export function place(fields: Partial<Place>): Place {
  const empty = { file: "", line: 0, function: "", module: "", share: 0, block: "", chain: [], exact: false };
  return { ...empty, file_bytes: 0, file_time_us: 0, source: [], source_begin: 0, hottest_line: 0, hottest_share: 0, other_lines: [], ...fields };
}

export function done(source: string): ReportAnswer {
  return { id: source, state: "done", progress: 1, report: report(source) };
}

export function analysing(source: string): ReportAnswer {
  return { id: source, state: "analysing", progress: 0.5 };
}
