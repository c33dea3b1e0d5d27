// The recordings that the chosen one can be compared with.
import { groups, keyOf, type Group, type Key } from "../../app/state";
import type { RunEntry } from "../../shared/report";

/** More are not listed at once; the filter finds the others. */
export const LISTED = 40;

export interface Candidates {
  readonly shown: readonly Group[];
  readonly left: number; // that match the filter and are not shown
  readonly all: number; // whatever the filter says
}

/** Traces other than the chosen one that contain every word of the filter: those of its own run and of its siblings first. */
export function candidates(runs: readonly RunEntry[], chosen: RunEntry, filter: string): Candidates {
  const others = runs.filter((entry) => comparable(entry) && keyOf(entry) !== keyOf(chosen));
  const nearest = [...others].sort((one, other) => distance(one, chosen) - distance(other, chosen)); // stable
  const found = groups(nearest, filter);
  const count = found.reduce((sum, { entries }) => sum + entries.length, 0);
  const shown: Group[] = [];
  let room = LISTED;
  for (const { run, entries } of found) {
    if (room > 0) shown.push({ run, entries: entries.slice(0, room) });
    room -= entries.length;
  }
  return { shown, left: Math.max(0, count - LISTED), all: others.length };
}

/** What a comparison reads is traces. */
export const comparable = ({ evidence_source }: RunEntry): boolean => evidence_source !== "telemetry";

/** How many folders of the chosen run's path are not on the other's. */
function distance({ run }: RunEntry, chosen: RunEntry): number {
  const [mine, theirs] = [chosen.run.split("/"), run.split("/")];
  const shared = mine.findIndex((folder, depth) => folder !== theirs[depth]);
  return shared < 0 ? 0 : mine.length - shared;
}

/** The recording that is named, where the list has it and it can be compared with the chosen one. */
export function counterpart(runs: readonly RunEntry[], against: Key | undefined, chosen: RunEntry): RunEntry | undefined {
  return runs.find((entry) => keyOf(entry) === against && comparable(entry) && keyOf(entry) !== keyOf(chosen));
}
