// Connects the store with the server and the host page: what is requested when, and what a click or a new address does.
import * as host from "../shared/page/host";
import { isTelemetry } from "../shared/run/groups";
import { keyOf, type Key } from "../shared/run/keys";
import type { Session } from "../shared/run/session";
import type { View } from "../shared/run/views";
import type { Client } from "../shared/server/api";
import { Poller } from "../shared/server/poller";
import { withAddress, writeAddress } from "./address";
import { chosenEntry, pollDelay, type Action, type State } from "./state";
import type { Store } from "./store";

/** The initial state, with the parameters of the address. */
export const stateFromUrl = (start: State): State => withAddress(start, host.inUrl);

/** The view of all ranks of a job. */
const JOB_VIEW: View = "job";

export function startSession(store: Store, client: Client): Session {
  const poller = new Poller(async (signal) => {
    const problem = await requestAll(store, client, signal);
    if (!signal.aborted) {
      store.dispatch(problem === undefined ? { type: "polled" } : { type: "failed", at: Date.now(), message: problem });
    }
    return pollDelay(store.state);
  });

  /** Dispatches the actions. If they choose another recording, its cached report is shown and its report requested. */
  const apply = (...actions: readonly Action[]) => {
    const before = store.state.chosen;
    for (const action of actions) store.dispatch(action);
    const { chosen } = store.state;
    if (chosen === before || chosen === undefined) return;
    const entry = chosenEntry(store.state);
    const cached = entry && client.cachedReport(entry.id);
    if (cached) store.dispatch({ type: "report", key: chosen, answer: cached });
    poller.now();
  };
  /** The same for what the user does, which the address records. */
  const act = (...actions: readonly Action[]) => {
    apply(...actions);
    writeAddress(store.state, host.inUrl, host.putInUrl);
  };

  host.onUrlChange(() => {
    apply({ type: "address", apply: (state) => withAddress(state, host.inUrl) });
    const asked = host.inUrl("run");
    if (asked !== undefined && asked !== store.state.chosen) completeAddress(store.state); // another recording has the view
  });
  host.onReload(() => {
    if (!host.isHidden()) poller.now(); // a hidden tab requests when it is shown
  });
  pollWhileVisible(poller);
  const open = (view: View): Action => ({ type: "view", view });
  return {
    client,
    choose: (key: Key, view?: View) => {
      const { baseline, chosen } = store.state;
      // Choosing recording A of a comparison swaps A and B.
      act(...(key === baseline ? [{ type: "baseline", key: chosen } as const] : []), ...(view ? [open(view)] : []), { type: "choose", key });
    },
    openTraining: (training) => act(...(training.job ? [open(JOB_VIEW)] : []), { type: "choose", key: keyOf(training) }),
    open: (view) => act(open(view)),
    showFocus: (focus) => act({ type: "focus", focus }),
    setVisible: (visible) => act({ type: "visible", visible }),
    compare: (key) => act({ type: "series", keys: undefined }, { type: "baseline", key }, open("compare")),
    compareSeries: (keys) => act({ type: "baseline", key: undefined }, { type: "series", keys }, open("compare")),
    showOverview: (query) => act({ type: "overview", query }),
    predict: (text) => act({ type: "series", keys: undefined }, { type: "baseline", key: undefined }, { type: "conditions", text: text || undefined }, open("compare")),
    showTree: (text) => act({ type: "tree", text: text || undefined }, open("tree")),
    refresh: () => poller.now(),
  };
}

/** Writes what the list decided (what comes first, or which recording has the view) into the current history entry, so that Back returns to it. */
const completeAddress = (state: State) => writeAddress(state, host.inUrl, (name, text) => host.putInUrl(name, text, "same"));

/** Polls only while the tab is visible. */
function pollWhileVisible(poller: Poller): void {
  const update = () => (host.isHidden() ? poller.pause() : poller.now());
  host.onVisibilityChange(update);
  update();
}

/** Requests the list, then the report of the chosen recording. Returns the message of a failure, if there was one. */
async function requestAll(store: Store, client: Client, signal: AbortSignal): Promise<string | undefined> {
  const runs = await client.runs(signal);
  if (runs.kind !== "ok") return runs.kind === "failed" ? runs.message : undefined;
  const before = store.state.chosen;
  store.dispatch({ type: "runs", list: runs.value });
  // Only then: another address may be a step in the history that was not announced yet, and would be undone.
  if (store.state.chosen !== before) completeAddress(store.state);
  if (runs.value.runs.some(isTelemetry)) {
    const live = await client.live(signal);
    if (live.kind === "ok") store.dispatch({ type: "live", jobs: live.value.jobs });
  }
  const entry = chosenEntry(store.state);
  const key = store.state.chosen;
  if (!entry || key === undefined) return undefined;
  const result = await client.report(entry.id, signal);
  if (result.kind === "ok") store.dispatch({ type: "report", key, answer: result.value });
  if (result.kind === "pending") store.dispatch({ type: "report", key, answer: { id: entry.id, ...result.value } });
  return result.kind === "failed" ? result.message : undefined;
}
