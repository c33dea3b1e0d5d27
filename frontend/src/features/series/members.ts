// The recordings of a series as the list has them, and the other way round: which of them a point of the answer is.
import { comparable } from "../compare/candidates";
import type { RunEntry } from "../../shared/report";
import { keyOf, type Key } from "../../app/state";

export interface Members {
  readonly entries: readonly RunEntry[]; // in the order asked for
  readonly missing: readonly Key[]; // not there (any more), or no trace
}

/** Undefined where no row was asked for, or not with this recording in it. */
export function membersOf(runs: readonly RunEntry[], row: readonly Key[] | undefined, chosen: RunEntry): Members | undefined {
  if (!row?.includes(keyOf(chosen))) return undefined;
  const byKey = new Map(runs.filter(comparable).map((entry) => [keyOf(entry), entry]));
  return {
    entries: row.flatMap((key) => byKey.get(key) ?? []),
    missing: row.filter((key) => !byKey.has(key)),
  };
}

const byName = new Intl.Collator("en", { numeric: true });

/** Keys as a person would count them: w2 before w10, and what torch names after the time in the order of time. */
export const inOrder = (keys: Iterable<Key>): readonly Key[] => [...keys].sort(byName.compare);

/** The recording that the answer calls by this name: plugin/comparing.py leaves the logdir itself out of it. */
export function named(name: string, entries: readonly RunEntry[]): RunEntry | undefined {
  return entries.find(({ run, source }) => name === (run === "." || run === "" ? source : `${run}/${source}`));
}
