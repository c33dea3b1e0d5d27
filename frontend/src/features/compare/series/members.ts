// The recordings of a series in the list, and the recording that a name in the response stands for.
import type { RunEntry } from "../../../shared/report";
import { comparable } from "../../../shared/run/groups";
import { comparedName, keyOf, type Key } from "../../../shared/run/keys";

export interface Members {
  readonly entries: readonly RunEntry[]; // in the requested order
  readonly missing: readonly Key[]; // not in the list, or not to compare
}

/** Undefined without a series, or if the chosen recording is not part of it. */
export function membersOf(runs: readonly RunEntry[], series: readonly Key[] | undefined, chosen: RunEntry): Members | undefined {
  if (!series?.includes(keyOf(chosen))) return undefined;
  const byKey = new Map(comparable(runs).map((entry) => [keyOf(entry), entry]));
  return {
    entries: series.flatMap((key) => byKey.get(key) ?? []),
    missing: series.filter((key) => !byKey.has(key)),
  };
}

const naturalOrder = new Intl.Collator("en", { numeric: true });

/** Sorts keys with their numbers as numbers: w2 before w10, and torch's file names by time. */
export const inNaturalOrder = (keys: Iterable<Key>): readonly Key[] => [...keys].sort(naturalOrder.compare);

/** The recording with this name in the response. */
export function entryNamed(name: string, entries: readonly RunEntry[]): RunEntry | undefined {
  return entries.find((entry) => comparedName(entry) === name);
}
