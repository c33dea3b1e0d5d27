// What each view is called, and when a recording has it. A missing view is a type error.
import type { Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { View } from "../shared/run/views";

interface ViewFacts {
  readonly title: string;
  /** What the list says of a recording that has the view; left out where all recordings have it. */
  readonly shows?: (entry: RunEntry) => boolean;
  /** Why this recording does not have the view; undefined if it has it. */
  readonly missing: (report: Report, entry: RunEntry) => string | undefined;
}

/** Views of single operations. */
function missingOperations(report: Report, entry: RunEntry): string | undefined {
  if (!isTrace(entry)) return `${isSnapshot(entry) ? "A snapshot of the allocator" : "Telemetry"} contains no single operations. A trace of torch.profiler does.`;
  return report.health?.status === "unreadable" ? "This file could not be read." : undefined;
}

const isReadableTrace = (entry: RunEntry) => isTrace(entry) && entry.health !== "unreadable";

const missingTrace = (_: Report, entry: RunEntry) => (isTrace(entry) ? undefined : `This view needs a trace; this recording is ${isSnapshot(entry) ? "a snapshot of the allocator" : "telemetry"}.`);

const isSnapshot = ({ evidence_source }: RunEntry) => evidence_source === "snapshot";

const FACTS: Readonly<Record<View, ViewFacts>> = {
  diagnosis: { title: "Diagnosis", missing: () => undefined },
  tree: { title: "Where", shows: isReadableTrace, missing: missingOperations },
  timeline: { title: "Timeline", shows: isReadableTrace, missing: missingOperations },
  memory: {
    title: "Memory",
    shows: ({ peak_bytes }) => peak_bytes !== undefined,
    missing: ({ memory }) => (memory ? undefined : "Memory was not recorded. A trace with profile_memory=True contains it."),
  },
  job: {
    title: "Job",
    shows: (entry) => isTrace(entry) && (entry.world_size ?? 1) > 1,
    missing: (report, entry) => missingTrace(report, entry) ?? ((report.world_size ?? 1) > 1 ? undefined : "This run has one process."),
  },
  live: {
    title: "Over time",
    shows: ({ evidence_source }) => evidence_source === "telemetry",
    missing: (_, { evidence_source }) => (evidence_source === "telemetry" ? undefined : `This recording is a ${evidence_source || "trace"}. The monitor records telemetry.`),
  },
  compare: {
    title: "Compare",
    shows: isTrace,
    missing: (_, entry) => (isSnapshot(entry) ? "This view compares runs; this recording is a snapshot of the allocator." : undefined),
  },
};

export const titleOf = (view: View): string => FACTS[view].title;

/** True if the list says that this recording has the view. Its report may still show that the view would be empty. */
export const hasView = (view: View, entry: RunEntry): boolean => FACTS[view].shows?.(entry) ?? true;

/**
 * The recording of a training in which a view opens: the chosen one if it has the view, else the last one of the same
 * rank that has it, preferably with a verdict. The chosen one if there is none.
 */
export function recordingFor(view: View, chosen: RunEntry, members: readonly RunEntry[]): RunEntry {
  if (hasView(view, chosen)) return chosen;
  const others = members.filter((member) => member.rank === chosen.rank && hasView(view, member));
  return others.filter(({ verdict }) => verdict).at(-1) ?? others.at(-1) ?? chosen;
}

/** Why no recording of the training has a view; undefined if one has it. The report is that of the chosen one. */
export function missingBecause(view: View, report: Report, chosen: RunEntry, members: readonly RunEntry[]): string | undefined {
  return recordingFor(view, chosen, members) === chosen ? FACTS[view].missing(report, chosen) : undefined;
}

/** Why this recording does not have a view; undefined if it has it. The diagnosis is then shown in its place. */
export function missingFrom(view: View, report: Report, entry: RunEntry): string | undefined {
  return FACTS[view].missing(report, entry);
}
