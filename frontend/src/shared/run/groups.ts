// The list of recordings, filtered and grouped by run directory.
import type { RunEntry } from "../report";
import { fileStem, runName, sourceName } from "../text/names";
import { keyOf, type Key } from "./keys";
import { reviewSummary } from "./review";

export interface Group {
  readonly run: string;
  readonly entries: readonly RunEntry[];
}

/** The recordings that contain every word: in the name, the verdict, its severity or regime, the action, the device, the state, the review. */
export function withWords(runs: readonly RunEntry[], text: string): readonly RunEntry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? runs : runs.filter((entry) => words.every((word) => textOf(entry).includes(word)));
}

function textOf(entry: RunEntry): string {
  const { run, source, verdict, device, action, state, health, live, evidence_source } = entry;
  const parts = [runName(run), source, fileStem(source), sourceName(source), device, action, state, live ? "live" : "", evidence_source, reviewSummary(entry)];
  const judged = verdict ? [verdict.title, verdict.severity, verdict.regime] : [health];
  return [...parts, ...judged].join(" ").toLowerCase();
}

/** Groups the recordings that match the filter by run directory, in the server's order. */
export function groups(runs: readonly RunEntry[], filter: string): readonly Group[] {
  const byRun = new Map<string, RunEntry[]>();
  for (const entry of withWords(runs, filter)) {
    const entries = byRun.get(entry.run);
    if (entries) entries.push(entry);
    else byRun.set(entry.run, [entry]);
  }
  return [...byRun].map(([run, entries]) => ({ run, entries }));
}

/** The recording that is `rows` further down the filtered list than `from`; the first one if `from` is not in the list. */
export function neighbour(runs: readonly RunEntry[], filter: string, from: Key | undefined, rows: 1 | -1): Key | undefined {
  const keys = groups(runs, filter).flatMap(({ entries }) => entries.map(keyOf));
  const at = from === undefined ? -1 : keys.indexOf(from);
  return at < 0 ? keys[0] : keys[Math.min(Math.max(at + rows, 0), keys.length - 1)];
}

/** Returns true if the recording is a trace. Comparisons read traces only. */
export const isTrace = ({ evidence_source }: RunEntry): boolean => evidence_source !== "telemetry" && evidence_source !== "snapshot";
