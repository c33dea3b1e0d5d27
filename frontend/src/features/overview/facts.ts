// What the overview's table and its groups show of a training. A figure that is not known comes with the reason.
import type { TrainingEntry } from "../../shared/run/trainings";
import { perSecond } from "../../shared/text/format";
import { runName, withoutMonitor } from "../../shared/text/names";

/** A value, or why it is not known. */
export type Known = { readonly value: number } | { readonly missing: string };

const known = (value: number | undefined, missing: string): Known => (value === undefined ? { missing } : { value });

const NOT_DONE = "The analysis has not ended.";

/** Samples per step / mean step time. */
export function samplesPerSecond(entry: TrainingEntry): Known {
  if (entry.job) return { missing: "The ranks of a job may share samples, and the recordings do not say which do." };
  const samples = samplesPerStep(entry);
  if ("missing" in samples) return samples;
  return known(entry.step_ns && perSecond(samples.value, entry.step_ns), "No step was timed.");
}

export function samplesPerStep({ efficiency, state }: TrainingEntry): Known {
  if (efficiency?.samples_per_step !== undefined) return { value: efficiency.samples_per_step };
  return { missing: state === "done" ? (efficiency?.samples_basis ?? "No step was timed.") : NOT_DONE };
}

export const peakBytes = ({ peak_bytes, state }: TrainingEntry): Known => known(peak_bytes, state === "done" ? "No memory was recorded: profile_memory=True records it, and the monitor counts it on a GPU." : NOT_DONE);

export const headroomBytes = (entry: TrainingEntry): Known => ("missing" in peakBytes(entry) ? peakBytes(entry) : known(entry.headroom_bytes, "The size of the memory was not recorded."));

/** The facts by which trainings can be grouped: what one of them has, "" if that is not known. */
export const GROUPINGS = {
  folder: { title: "folder", of: ({ named }: TrainingEntry, shared: string) => folderOf(named.run, shared) },
  run: { title: "run", of: ({ named }: TrainingEntry, shared: string) => withoutMonitor(runName(named.run)).slice(shared.length) },
  verdict: { title: "verdict", of: ({ verdict }: TrainingEntry) => verdict?.title ?? "" },
  device: { title: "device", of: ({ device }: TrainingEntry) => device },
  ranks: { title: "number of ranks", of: ({ world_size }: TrainingEntry) => String(world_size ?? 1) },
  batch: { title: "samples per step", of: ({ efficiency }: TrainingEntry) => (efficiency?.samples_per_step === undefined ? "" : String(efficiency.samples_per_step)) },
  revision: { title: "git revision", of: ({ revision }: TrainingEntry) => revision ?? "" },
} as const;
export type Grouping = keyof typeof GROUPINGS;

export const isGrouping = (text: string): text is Grouping => Object.hasOwn(GROUPINGS, text);

/** The first folder of a run below the folders that all runs share; the run itself if it is in none. */
function folderOf(run: string, shared: string): string {
  const rest = withoutMonitor(runName(run)).slice(shared.length);
  return rest.includes("/") ? rest.slice(0, rest.indexOf("/")) : rest;
}
