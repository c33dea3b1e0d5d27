// Marks a training in a list whose job cannot go on before somebody acts.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { LiveJob } from "../live";
import type { RunEntry } from "../report";
import { Icon } from "./icon";

/** The run directories of such jobs. */
export const StalledRuns = createContext<ReadonlySet<string>>(new Set());

export const stalledRuns = (jobs: readonly LiveJob[]): ReadonlySet<string> =>
  new Set(jobs.filter(({ verdict }) => verdict.stalled).flatMap(({ ranks }) => ranks.map(({ directory }) => directory)));

export function Stalled({ members }: { members: readonly RunEntry[] }) {
  const runs = useContext(StalledRuns);
  if (!members.some(({ run }) => runs.has(run))) return null;
  return (
    <strong class="tone-bad">
      <Icon name="warning" /> does not go on
    </strong>
  );
}
