// The recordings that can be compared with the chosen one.
import type { RunEntry } from "../../shared/report";
import { comparable, groups, type Group } from "../../shared/run/groups";
import { keyOf, type Key } from "../../shared/run/keys";

/** The number of candidates that are listed. The filter finds the others. */
export const MAX_CANDIDATES = 40;

export interface Candidates {
  readonly shown: readonly Group[];
  readonly hidden: number; // match the filter and are not shown
  readonly total: number; // without the filter
}

/** The other recordings that contain every word of the filter, those of the same and of neighbouring runs first. */
export function candidates(runs: readonly RunEntry[], chosen: RunEntry, filter: string): Candidates {
  const others = comparable(runs).filter((entry) => keyOf(entry) !== keyOf(chosen));
  const nearest = [...others].sort((one, other) => distance(one, chosen) - distance(other, chosen)); // stable
  const matches = groups(nearest, filter);
  const count = matches.reduce((sum, { entries }) => sum + entries.length, 0);
  const shown: Group[] = [];
  let room = MAX_CANDIDATES;
  for (const { run, entries } of matches) {
    if (room > 0) shown.push({ run, entries: entries.slice(0, room) });
    room -= entries.length;
  }
  return { shown, hidden: Math.max(0, count - MAX_CANDIDATES), total: others.length };
}

/** The number of folders of the chosen run's path that the other path does not share. */
function distance({ run }: RunEntry, chosen: RunEntry): number {
  const [path, otherPath] = [chosen.run.split("/"), run.split("/")];
  const shared = path.findIndex((folder, depth) => folder !== otherPath[depth]);
  return shared < 0 ? 0 : path.length - shared;
}

/** The recording with this key, if it is in the list and can be compared with the chosen one. */
export function baselineOf(runs: readonly RunEntry[], key: Key | undefined, chosen: RunEntry): RunEntry | undefined {
  return comparable(runs).find((entry) => keyOf(entry) === key && keyOf(entry) !== keyOf(chosen));
}
