// What each view shows. A missing view is a type error. Views beyond the diagnosis are files of their own, fetched when they are first opened.
import type { JSX } from "preact";
import { Diagnosis } from "../features/diagnosis/diagnosis";
import { scrollToCause } from "../shared/page/scroll_to_cause";
import { liveJobOf } from "../shared/live";
import type { Place, Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { Session } from "../shared/run/session";
import type { ViewProps } from "../shared/run/view_props";
import type { View } from "../shared/run/views";
import { titleOf } from "./available_views";
import { lazyView } from "../shared/widgets/lazy_view";
import type { State } from "./state";

const Details = lazyView(async () => (await import("../features/diagnosis/details")).Details);
export const RunTime = lazyView(async () => (await import("../features/diagnosis/run_time")).RunTime);
export const Phases = lazyView(async () => (await import("../features/diagnosis/phases")).Phases);
const Tree = lazyView(async () => (await import("../features/where/tree")).TreeView);
const Timeline = lazyView(async () => (await import("../features/timeline/timeline")).TimelineView);
const Memory = lazyView(async () => (await import("../features/memory/memory")).MemoryView);
const Job = lazyView(async () => (await import("../features/job/job")).JobView);
const Telemetry = lazyView(async () => (await import("../features/over_time/telemetry")).TelemetryView);
const Compare = lazyView(async () => (await import("../features/compare/compare")).CompareView);
const Efficiency = lazyView(async () => (await import("../features/diagnosis/efficiency")).Efficiency);
export const LiveNotice = lazyView(async () => (await import("../features/over_time/live_notice")).LiveNotice);
const RankHistory = lazyView(async () => (await import("../features/over_time/rank_history")).RankHistory);

/** A recording in the list with its report, and what of it is shown. */
export interface Shown {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly state: State;
}

const RENDERED: Readonly<Record<View, (shown: Shown) => JSX.Element>> = {
  diagnosis: ({ report, entry, session, state: { list } }) => (
    <Diagnosis
      report={report}
      details={(report.step_parts.length > 0 || report.input || report.compilation || report.graphs) && <Details {...report} />}
      phases={report.phases.length > 1 && <Phases phases={report.phases} showFocus={session.showFocus} />}
      run={report.run_time && <RunTime run_time={report.run_time} />}
      showFocus={session.showFocus}
      predict={() => session.predict("")}
      showMemory={() => session.open("memory")}
      {...(isTrace(entry) ? { showPlace: (place: Place) => void showPlace(session, place) } : {})}
      efficiency={(report.efficiency || report.headroom.length > 0) && <Efficiency report={report} />}
      reviewed={{ logdir: list?.logdir ?? "", entry }}
    />
  ),
  tree: (shown) => (
    <Tree
      {...viewProps(shown)}
      runs={shown.state.list?.runs ?? []}
      options={shown.state.tree}
      showTree={shown.session.showTree}
      showFinding={(cause) => (shown.session.open("diagnosis"), scrollToCause(cause))}
    />
  ),
  timeline: (shown) => <Timeline {...viewProps(shown)} />,
  memory: ({ report, entry, session, state: { list, baseline } }) => (
    <Memory report={report} entry={entry} runs={list?.runs ?? []} session={session} baseline={baseline} />
  ),
  job: (shown) => (
    <>
      {ranksOverTime(shown)}
      <Job {...viewProps(shown)} runs={shown.state.list?.runs ?? []} choose={shown.session.choose} />
    </>
  ),
  live: (shown) => (
    <>
      {ranksOverTime(shown)}
      <Telemetry {...viewProps(shown)} />
    </>
  ),
  compare: ({ report, entry, session, state: { list, baseline, series, conditions } }) => (
    <Compare session={session} report={report} entry={entry} runs={list?.runs ?? []} baseline={baseline} series={series} conditions={conditions} />
  ),
};

const ranksOverTime = ({ entry, session, state: { live } }: Shown) => liveJobOf(live, entry.run) && <RankHistory client={session.client} run={entry.run} />;

/** Shows a place of the program in the breakdown. */
async function showPlace(session: Session, place: Place): Promise<void> {
  const { formatOptions, optionsOf } = await import("../features/where/options");
  session.showTree(formatOptions(optionsOf(place)));
}

function viewProps({ report, entry, session, state: { focus, visible } }: Shown): ViewProps {
  const { client, showFocus, setVisible } = session;
  return { client, entry, report, focus, visible, showFocus, setVisible };
}

export function ViewPanel({ view, ...shown }: Shown & { readonly view: View }) {
  return (
    <div class={view === "diagnosis" ? "panel diagnosis" : "panel"} id="panel" role="tabpanel" aria-label={titleOf(view)} tabIndex={-1}>
      {RENDERED[view](shown)}
    </div>
  );
}
