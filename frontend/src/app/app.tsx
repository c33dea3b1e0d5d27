// The page: the trainings on the left (on top of a narrow page), the chosen one on the right.
import { useEffect, useMemo, useState } from "preact/hooks";
import { RunList } from "../features/run_list/run_list";
import { liveJobOf, type LiveJob } from "../shared/live";
import type { RunList as RunListAnswer } from "../shared/report";
import { isTelemetry, isTrace } from "../shared/run/groups";
import { keyOf } from "../shared/run/keys";
import { neighbour, trainingOf, trainingsOf } from "../shared/run/trainings";
import type { Session } from "../shared/run/session";
import { timeOfDay } from "../shared/text/format";
import { Icon } from "../shared/widgets/icon";
import { Analysing, Connecting, Unreachable } from "./empty";
import { useFocusRestore } from "./focus_restore";
import { lazyView } from "../shared/widgets/lazy_view";
import { StalledRuns, stalledRuns } from "../shared/widgets/stalled";
import { RecordingPage } from "./recording_page";
import { chosenEntry, hasVanished, WHOLE_OVERVIEW, type State } from "./state";
import { Shortcuts } from "./shortcuts";
import type { Store } from "./store";
import type { Shown } from "./view_registry";

const Scanning = lazyView(async () => (await import("./empty_pages")).Scanning);
const NoRecordings = lazyView(async () => (await import("./empty_pages")).NoRecordings);
const Vanished = lazyView(async () => (await import("./empty_pages")).Vanished);
const Overview = lazyView(async () => (await import("../features/overview/overview")).Overview);
const StalledJobs = lazyView(async () => (await import("../features/over_time/live_notice")).StalledJobs);

export function App({ store, session }: { store: Store; session: Session }) {
  const [state, setState] = useState(store.state);
  useEffect(() => {
    setState(store.state); // a response may have arrived before the subscription
    return store.subscribe(setState);
  }, [store]);

  useEffect(() => window.scrollTo({ top: 0 }), [state.chosen, state.view, state.baseline, state.series, state.overview === undefined]);
  useFocusRestore();

  const { list, failure, filter } = state;
  const chosen = state.overview === undefined ? state.chosen : undefined;
  // The list is not drawn again for what only the page beside it shows: it has many rows.
  const runList = useMemo(
    () =>
      list && (
        <RunList
          list={list}
          chosen={chosen}
          overview={trainingsOf(list).length > 1 ? () => session.showOverview(WHOLE_OVERVIEW) : undefined}
          filter={filter}
          choose={session.openTraining}
          compare={(entry) => session.compare(keyOf(entry.members.find(isTrace) ?? entry))}
          setFilter={(text) => store.dispatch({ type: "filter", text })}
        />
      ),
    [list, chosen, filter, session, store],
  );
  const elsewhere = (state.live ?? []).filter((job) => job.verdict.stalled && (state.overview !== undefined || liveJobOf([job], chosenEntry(state)?.run ?? "") === undefined));
  const stalled = useMemo(() => stalledRuns(state.live ?? []), [state.live]);
  if (!list) return <main>{failure ? <Unreachable failure={failure} retry={session.refresh} /> : <Connecting />}</main>;
  return (
    <>
      {failure && <Stale since={failure.since} message={failure.message} retry={session.refresh} />}
      {list.runs.length === 0 ? (
        <main>
          <EmptyList state={state} />
        </main>
      ) : (
        <StalledRuns.Provider value={stalled}>
          <div class="columns">
            {runList}
            <main>
              {elsewhere.length > 0 && <StalledJobs jobs={elsewhere} open={(job) => openLive(job, list, session)} />}
              {state.overview === undefined ? (
                <ChosenRecording state={state} session={session} />
              ) : (
                <Overview list={list} query={state.overview} session={session} />
              )}
            </main>
            <Shortcuts
              shown={shownOf(state, session)}
              move={(rows) => {
                const next = neighbour(trainingsOf(list), state.filter, trainingOf(list, state.chosen), rows);
                if (next) session.choose(keyOf(next));
              }}
            />
          </div>
        </StalledRuns.Provider>
      )}
    </>
  );
}

/** Opens the telemetry of the rank that a running job waits for. */
function openLive(job: LiveJob, { runs }: RunListAnswer, session: Session): void {
  const [culprit] = job.verdict.ranks;
  const rank = job.ranks.find(({ rank }) => rank === culprit) ?? job.ranks[0];
  const entry = runs.find((each) => isTelemetry(each) && each.run === rank?.directory);
  if (entry) session.choose(keyOf(entry), "live");
}

/** The chosen recording with its report; undefined as long as there is none. */
function shownOf(state: State, session: Session): Shown | undefined {
  const entry = state.overview === undefined ? chosenEntry(state) : undefined;
  return state.report && entry && { report: state.report, entry, session, state };
}

function EmptyList({ state: { list } }: { state: State }) {
  if (!list) return null;
  return list.state === "scanning" ? (
    <Scanning logdir={list.logdir} />
  ) : (
    <NoRecordings logdir={list.logdir} problems={list.problems} />
  );
}

function ChosenRecording({ state, session }: { state: State; session: Session }) {
  const { report, answer } = state;
  const entry = chosenEntry(state);
  if (hasVanished(state)) return <Vanished name={state.chosen ?? ""} report={report} />;
  if (report) {
    const analysis = answer && answer.state !== "done" ? answer : undefined;
    return <RecordingPage report={report} analysis={analysis} shown={entry && { entry, session, state }} />;
  }
  if (entry) return <Analysing entry={entry} answer={answer} />;
  return <Connecting />;
}

/** The latest requests failed. The page shows the last response that arrived. */
function Stale({ since, message, retry }: { since: number; message: string; retry: () => void }) {
  return (
    <div class="stale" role="status">
      <Icon name="warning" />
      <p>
        <strong>No usable answer from TensorBoard since {timeOfDay(since)}.</strong> This page may be out of date.{" "}
        <span class="muted">{message}</span>
      </p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </div>
  );
}
