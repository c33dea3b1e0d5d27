// What each view is called, when a recording has it, and what it shows. A missing view is a type error.
// Views beyond the diagnosis are files of their own, fetched when they are first opened.
import type { JSX } from "preact";
import { Diagnosis } from "../features/diagnosis/diagnosis";
import { formatOptions, optionsOf } from "../features/tree/options";
import { scrollToCause } from "../shared/page/scroll_to_cause";
import type { Place, Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { Session } from "../shared/run/session";
import type { ViewProps } from "../shared/run/view_props";
import type { View } from "../shared/run/views";
import { lazyView } from "./lazy_view";
import type { State } from "./state";

const Details = lazyView(async () => (await import("../features/diagnosis/details")).Details);
const Tree = lazyView(async () => (await import("../features/tree/tree")).TreeView);
const Timeline = lazyView(async () => (await import("../features/timeline/timeline")).TimelineView);
const Tables = lazyView(async () => (await import("../features/tables/tables")).TablesView);
const Roofline = lazyView(async () => (await import("../features/roofline/roofline")).RooflineView);
const Memory = lazyView(async () => (await import("../features/memory/memory")).MemoryView);
const Job = lazyView(async () => (await import("../features/job/job")).JobView);
const Telemetry = lazyView(async () => (await import("../features/telemetry/telemetry")).TelemetryView);
const Compare = lazyView(async () => (await import("../features/compare/compare")).CompareView);
const Efficiency = lazyView(async () => (await import("../features/efficiency/efficiency")).Efficiency);
const WhatIf = lazyView(async () => (await import("../features/what_if/what_if")).WhatIfView);

/** A recording in the list with its report, and what of it is shown. */
export interface Shown {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly state: State;
}

interface ViewEntry {
  readonly title: string;
  /** Why this recording does not have the view; undefined if it has it. */
  readonly missing: (report: Report, entry: RunEntry) => string | undefined;
  readonly render: (shown: Shown) => JSX.Element;
}

/** Views of single operations. */
function missingOperations(report: Report, entry: RunEntry): string | undefined {
  if (!isTrace(entry)) return `${isSnapshot(entry) ? "A snapshot of the allocator" : "Telemetry"} contains no single operations. A trace of torch.profiler does.`;
  return report.health?.status === "unreadable" ? "This file could not be read." : undefined;
}

const missingTrace = (_: Report, entry: RunEntry) => (isTrace(entry) ? undefined : `This view needs a trace; this recording is ${isSnapshot(entry) ? "a snapshot of the allocator" : "telemetry"}.`);

const isSnapshot = ({ evidence_source }: RunEntry) => evidence_source === "snapshot";

const ENTRIES: Readonly<Record<View, ViewEntry>> = {
  diagnosis: {
    title: "Diagnosis",
    missing: () => undefined,
    render: ({ report, entry, session, state: { list } }) => (
      <Diagnosis
        report={report}
        details={(report.input || report.compilation || report.serving) && <Details {...report} />}
        showFocus={session.showFocus}
        predict={() => session.open("whatif")}
        showMemory={() => session.open("memory")}
        {...(isTrace(entry) ? { showPlace: (place: Place) => session.showTree(formatOptions(optionsOf(place))) } : {})}
        efficiency={(report.efficiency || report.headroom.length > 0) && <Efficiency report={report} />}
        reviewed={{ logdir: list?.logdir ?? "", entry, compare: session.compare }}
      />
    ),
  },
  tree: {
    title: "Breakdown",
    missing: missingOperations,
    render: (shown) => (
      <Tree
        {...viewProps(shown)}
        runs={shown.state.list?.runs ?? []}
        options={shown.state.tree}
        setOptions={(options) => shown.session.showTree(formatOptions(options))}
        showFinding={(cause) => (shown.session.open("diagnosis"), scrollToCause(cause))}
      />
    ),
  },
  timeline: { title: "Timeline", missing: missingOperations, render: (shown) => <Timeline {...viewProps(shown)} /> },
  tables: { title: "Operators", missing: missingOperations, render: (shown) => <Tables {...viewProps(shown)} /> },
  roofline: { title: "Roofline", missing: missingOperations, render: (shown) => <Roofline {...viewProps(shown)} /> },
  memory: {
    title: "Memory",
    missing: ({ memory }) => (memory ? undefined : "Memory was not recorded. A trace with profile_memory=True contains it."),
    render: ({ report, entry, session, state: { list, baseline } }) => (
      <Memory report={report} entry={entry} runs={list?.runs ?? []} session={session} baseline={baseline} />
    ),
  },
  job: {
    title: "Job",
    missing: (report, entry) => missingTrace(report, entry) ?? ((report.world_size ?? 1) > 1 ? undefined : "This run has one process."),
    render: (shown) => <Job {...viewProps(shown)} runs={shown.state.list?.runs ?? []} choose={shown.session.choose} />,
  },
  live: {
    title: "Telemetry",
    missing: (_, { evidence_source }) => (evidence_source === "telemetry" ? undefined : `This recording is a ${evidence_source || "trace"}. The monitor records telemetry.`),
    render: (shown) => <Telemetry {...viewProps(shown)} />,
  },
  compare: {
    title: "Compare",
    missing: missingTrace,
    render: ({ report, entry, session, state: { list, baseline, series } }) => (
      <Compare session={session} report={report} entry={entry} runs={list?.runs ?? []} baseline={baseline} series={series} />
    ),
  },
  whatif: {
    title: "What if",
    missing: (report, entry) => missingTrace(report, entry) ?? (report.verdict ? undefined : "A prediction needs a recording with a verdict."),
    render: ({ report, entry, session, state: { conditions } }) => <WhatIf session={session} report={report} entry={entry} conditions={conditions} />,
  },
};

function viewProps({ report, entry, session, state: { focus, visible } }: Shown): ViewProps {
  const { client, showFocus, setVisible } = session;
  return { client, entry, report, focus, visible, showFocus, setVisible };
}

export const titleOf = (view: View): string => ENTRIES[view].title;

/** Why this recording does not have a view; undefined if it has it. */
export const missingBecause = (view: View, report: Report, entry: RunEntry): string | undefined => ENTRIES[view].missing(report, entry);

/** The requested view, or the diagnosis if this recording does not have it. */
export function availableView(requested: View, report: Report, entry: RunEntry): View {
  return missingBecause(requested, report, entry) === undefined ? requested : "diagnosis";
}

export function ViewPanel({ view, ...shown }: Shown & { readonly view: View }) {
  return (
    <div class={view === "diagnosis" ? "panel diagnosis" : "panel"} id="panel" role="tabpanel" aria-label={titleOf(view)} tabIndex={-1}>
      {ENTRIES[view].render(shown)}
    </div>
  );
}
