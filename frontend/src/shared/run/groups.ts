// The list of recordings, filtered and grouped by run directory.
import type { RunEntry } from "../report";
import { fileStem, runName, sourceName } from "../text/names";
import { keyOf, type Key } from "./keys";

export interface Group {
  readonly run: string;
  readonly entries: readonly RunEntry[];
}

/** Groups the recordings that contain every word of the filter by run directory, in the server's order. */
export function groups(runs: readonly RunEntry[], filter: string): readonly Group[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const byRun = new Map<string, RunEntry[]>();
  for (const entry of runs) {
    const text = `${runName(entry.run)} ${fileStem(entry.source)} ${sourceName(entry.source)} ${entry.verdict?.title ?? entry.health}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
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
export const isTrace = ({ evidence_source }: RunEntry): boolean => evidence_source !== "telemetry";
