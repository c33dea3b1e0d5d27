// What each view is called, and when a recording has it. A missing view is a type error.
import type { Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { View } from "../shared/run/views";

interface ViewFacts {
  readonly title: string;
  /** Why this recording does not have the view; undefined if it has it. */
  readonly missing: (report: Report, entry: RunEntry) => string | undefined;
}

/** Views of single operations. */
function missingOperations(report: Report, entry: RunEntry): string | undefined {
  if (!isTrace(entry)) return `${isSnapshot(entry) ? "A snapshot of the allocator" : "Telemetry"} contains no single operations. A trace of torch.profiler does.`;
  return report.health?.status === "unreadable" ? "This file could not be read." : undefined;
}

const missingTrace = (_: Report, entry: RunEntry) => (isTrace(entry) ? undefined : `This view needs a trace; this recording is ${isSnapshot(entry) ? "a snapshot of the allocator" : "telemetry"}.`);

const isSnapshot = ({ evidence_source }: RunEntry) => evidence_source === "snapshot";

const FACTS: Readonly<Record<View, ViewFacts>> = {
  diagnosis: { title: "Diagnosis", missing: () => undefined },
  tree: { title: "Breakdown", missing: missingOperations },
  timeline: { title: "Timeline", missing: missingOperations },
  tables: { title: "Operators", missing: missingOperations },
  roofline: { title: "Roofline", missing: missingOperations },
  memory: { title: "Memory", missing: ({ memory }) => (memory ? undefined : "Memory was not recorded. A trace with profile_memory=True contains it.") },
  job: { title: "Job", missing: (report, entry) => missingTrace(report, entry) ?? ((report.world_size ?? 1) > 1 ? undefined : "This run has one process.") },
  live: {
    title: "Telemetry",
    missing: (_, { evidence_source }) => (evidence_source === "telemetry" ? undefined : `This recording is a ${evidence_source || "trace"}. The monitor records telemetry.`),
  },
  compare: { title: "Compare", missing: missingTrace },
  whatif: { title: "What if", missing: (report, entry) => missingTrace(report, entry) ?? (report.verdict ? undefined : "A prediction needs a recording with a verdict.") },
};

export const titleOf = (view: View): string => FACTS[view].title;

/** Why this recording does not have a view; undefined if it has it. */
export const missingBecause = (view: View, report: Report, entry: RunEntry): string | undefined => FACTS[view].missing(report, entry);

/** The requested view, or the diagnosis if this recording does not have it. */
export function availableView(requested: View, report: Report, entry: RunEntry): View {
  return missingBecause(requested, report, entry) === undefined ? requested : "diagnosis";
}
