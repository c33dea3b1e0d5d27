// The page: recordings on the left (on top where it is narrow), the chosen one on the right.
import { useEffect, useState } from "preact/hooks";
import { timeOfDay } from "../shared/text/format";
import { useKeptFocus } from "./focus_restore";
import type { Session } from "./session";
import { chosenEntry, hasVanished, type State } from "./state";
import type { Store } from "./store";
import { Analysing, Asking, NoRecordings, Scanning, Silent, Vanished } from "./empty";
import { Icon } from "../shared/widgets/icon";
import { RecordingPage } from "./recording";
import { RunList } from "../features/run_list/run_list";

export function App({ store, session }: { store: Store; session: Session }) {
  const [state, setState] = useState(store.state);
  useEffect(() => {
    setState(store.state); // an answer may have come before we listened
    return store.subscribe(setState);
  }, [store]);

  useEffect(() => window.scrollTo({ top: 0 }), [state.chosen, state.view, state.against, state.row]);
  useKeptFocus();

  const { list, failure } = state;
  if (!list) return failure ? <Silent failure={failure} retry={session.refresh} /> : <Asking />;
  return (
    <>
      {failure && <Stale since={failure.since} message={failure.message} retry={session.refresh} />}
      {list.runs.length === 0 ? (
        <Nothing state={state} />
      ) : (
        <div class="columns">
          <RunList
            list={list}
            chosen={state.chosen}
            filter={state.filter}
            choose={session.choose}
            compare={session.compare}
            setFilter={(text) => store.dispatch({ type: "filter", text })}
          />
          <main>
            <Chosen state={state} session={session} />
          </main>
        </div>
      )}
    </>
  );
}

function Nothing({ state: { list } }: { state: State }) {
  if (!list) return null;
  return list.state === "scanning" ? (
    <Scanning logdir={list.logdir} />
  ) : (
    <NoRecordings logdir={list.logdir} problems={list.problems} />
  );
}

function Chosen({ state, session }: { state: State; session: Session }) {
  const { report, answer } = state;
  const entry = chosenEntry(state);
  if (hasVanished(state)) return <Vanished name={state.chosen ?? ""} report={report} />;
  if (report) {
    const again = answer && answer.state !== "done" ? answer : undefined;
    return <RecordingPage report={report} again={again} shown={entry && { entry, session, state }} />;
  }
  if (entry) return <Analysing entry={entry} answer={answer} />;
  return <Asking />;
}

/** The server has not answered lately; what is shown below is what it said last. */
function Stale({ since, message, retry }: { since: number; message: string; retry: () => void }) {
  return (
    <div class="stale" role="status">
      <Icon name="warning" />
      <p>
        <strong>No usable answer from TensorBoard since {timeOfDay(since)}.</strong> What you see is from before.{" "}
        <span class="muted">{message}</span>
      </p>
      <button type="button" onClick={retry}>
        Ask again
      </button>
    </div>
  );
}
