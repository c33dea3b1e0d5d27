// What each view is called, when a recording has it, and what it shows. A missing view is a type error.
// Views beyond the diagnosis are files of their own, fetched when they are first opened.
import type { JSX } from "preact";
import { Diagnosis } from "../features/diagnosis/diagnosis";
import type { Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { Session } from "../shared/run/session";
import type { ViewProps } from "../shared/run/view_props";
import { VIEWS, type View } from "../shared/run/views";
import { lazyView } from "./lazy_view";
import type { State } from "./state";

const Timeline = lazyView(async () => (await import("../features/timeline/timeline")).TimelineView);
const Tables = lazyView(async () => (await import("../features/tables/tables")).TablesView);
const Roofline = lazyView(async () => (await import("../features/roofline/roofline")).RooflineView);
const Memory = lazyView(async () => (await import("../features/memory/memory")).MemoryView);
const Ranks = lazyView(async () => (await import("../features/ranks/ranks")).RanksView);
const Telemetry = lazyView(async () => (await import("../features/telemetry/telemetry")).TelemetryView);
const Compare = lazyView(async () => (await import("../features/compare/compare")).CompareView);
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
  readonly isAvailable: (report: Report, entry: RunEntry) => boolean;
  readonly render: (shown: Shown) => JSX.Element;
}

const isReadable = (report: Report, entry: RunEntry) => isTrace(entry) && report.health?.status !== "unreadable";

const ENTRIES: Readonly<Record<View, ViewEntry>> = {
  diagnosis: {
    title: "Diagnosis",
    isAvailable: () => true,
    render: ({ report, session }) => <Diagnosis report={report} showFocus={session.showFocus} predict={() => session.open("whatif")} showMemory={() => session.open("memory")} />,
  },
  timeline: { title: "Timeline", isAvailable: isReadable, render: (shown) => <Timeline {...viewProps(shown)} /> },
  tables: { title: "What ran", isAvailable: isReadable, render: (shown) => <Tables {...viewProps(shown)} /> },
  roofline: { title: "Roofline", isAvailable: isReadable, render: (shown) => <Roofline {...viewProps(shown)} /> },
  memory: {
    title: "Memory",
    isAvailable: ({ memory }) => memory !== undefined,
    render: ({ report }) => <Memory report={report} />,
  },
  ranks: {
    title: "Ranks",
    isAvailable: ({ world_size }, entry) => isTrace(entry) && (world_size ?? 1) > 1,
    render: (shown) => <Ranks {...viewProps(shown)} choose={shown.session.choose} />,
  },
  live: { title: "Telemetry", isAvailable: (_, entry) => !isTrace(entry), render: (shown) => <Telemetry {...viewProps(shown)} /> },
  compare: {
    title: "Compare",
    isAvailable: (_, entry) => isTrace(entry),
    render: ({ report, entry, session, state: { list, baseline, series } }) => (
      <Compare session={session} report={report} entry={entry} runs={list?.runs ?? []} baseline={baseline} series={series} />
    ),
  },
  whatif: {
    title: "What if",
    isAvailable: ({ verdict }, entry) => isTrace(entry) && verdict !== undefined,
    render: ({ report, entry, session, state: { conditions } }) => <WhatIf session={session} report={report} entry={entry} conditions={conditions} />,
  },
};

function viewProps({ report, entry, session, state: { focus, visible } }: Shown): ViewProps {
  const { client, showFocus, setVisible } = session;
  return { client, entry, report, focus, visible, showFocus, setVisible };
}

export const titleOf = (view: View): string => ENTRIES[view].title;

/** The views that this recording has. */
export function viewsOf(report: Report, entry: RunEntry): readonly View[] {
  return VIEWS.filter((view) => ENTRIES[view].isAvailable(report, entry));
}

/** The requested view, or the diagnosis if this recording does not have it. */
export function availableView(requested: View, report: Report, entry: RunEntry): View {
  return ENTRIES[requested].isAvailable(report, entry) ? requested : "diagnosis";
}

export function ViewPanel({ view, ...shown }: Shown & { readonly view: View }) {
  return (
    <div class={view === "diagnosis" ? "panel diagnosis" : "panel"} id="panel" role="tabpanel" aria-label={titleOf(view)} tabIndex={-1}>
      {ENTRIES[view].render(shown)}
    </div>
  );
}
