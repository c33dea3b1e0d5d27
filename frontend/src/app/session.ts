// Ties the store to the server and to the host: what is asked when, and what a click or a URL does.
import type { Client } from "../shared/server/api";
import * as host from "../shared/page/host";
import { Poller } from "../shared/server/poller";
import { rowIn, rowText } from "../features/series/series_keys";
import { chosenEntry, entryOf, focusIn, pollDelay, spanText, viewNamed, type Focus, type Key, type State, type View } from "./state";
import type { Store } from "./store";

export interface Session {
  readonly client: Client;
  readonly choose: (key: Key) => void;
  readonly open: (view: View) => void;
  readonly look: (focus: Focus) => void;
  /** Compares the chosen recording with this one; without a key it is asked with which. */
  readonly compare: (key: Key | undefined) => void;
  /** Lays these recordings, the chosen one among them, in a row; without any it is asked which. */
  readonly lineUp: (keys: readonly Key[] | undefined) => void;
  /** Asks what would be if; an empty text asks nothing. */
  readonly suppose: (text: string) => void;
  readonly refresh: () => void;
}

/** The state that the address asks for. */
export function stateInUrl(start: State): State {
  const [chosen, focus, against] = [host.inUrl("run"), focusIn(host.inUrl("at"), host.inUrl("mark")), host.inUrl("with")];
  const [row, supposed] = [rowIn(host.inUrl("row")), host.inUrl("if")];
  return {
    ...start,
    view: viewNamed(host.inUrl("view")),
    ...(chosen === undefined ? {} : { chosen }),
    ...(focus ? { focus } : {}),
    ...(against === undefined ? {} : { against }),
    ...(row ? { row } : {}),
    ...(supposed === undefined ? {} : { supposed }),
  };
}

export function startSession(store: Store, client: Client): Session {
  const poller = new Poller(async (signal) => {
    const failure = await askAll(store, client, signal);
    if (!signal.aborted) {
      store.dispatch(failure === undefined ? { type: "polled" } : { type: "failed", at: Date.now(), message: failure });
    }
    return pollDelay(store.state);
  });

  const show = (key: Key) => {
    const entry = entryOf(store.state, key);
    store.dispatch({ type: "choose", key, remembered: entry && client.remembered(entry.id) });
    poller.now();
  };
  const followUrl = () => {
    const key = host.inUrl("run");
    if (key !== undefined && key !== store.state.chosen) show(key);
    store.dispatch({ type: "view", view: viewNamed(host.inUrl("view")) });
    store.dispatch({ type: "against", key: host.inUrl("with") });
    store.dispatch({ type: "row", keys: rowIn(host.inUrl("row")) });
    store.dispatch({ type: "supposed", text: host.inUrl("if") });
  };

  host.onUrlChange(followUrl);
  host.onReload(() => {
    if (!host.isHidden()) poller.now(); // a hidden tab asks as soon as it is shown
  });
  pollWhileShown(poller);
  const setAgainst = (key: Key | undefined) => {
    store.dispatch({ type: "against", key });
    host.putInUrl("with", key ?? "");
  };
  const setRow = (keys: readonly Key[] | undefined) => {
    store.dispatch({ type: "row", keys });
    host.putInUrl("row", rowText(keys ?? []));
  };
  const open = (view: View) => {
    store.dispatch({ type: "view", view });
    host.putInUrl("view", view === "diagnosis" ? "" : view);
  };
  return {
    client,
    choose: (key) => {
      // Two recordings that are compared change places when the other one is chosen.
      if (key === store.state.against) setAgainst(store.state.chosen);
      host.putInUrl("run", key);
      host.putInUrl("at", "");
      host.putInUrl("mark", "");
      show(key);
    },
    open,
    compare: (key) => {
      setRow(undefined);
      setAgainst(key);
      open("compare");
    },
    lineUp: (keys) => {
      setAgainst(undefined);
      setRow(keys);
      open("compare");
    },
    suppose: (text) => {
      store.dispatch({ type: "supposed", text: text || undefined });
      host.putInUrl("if", text);
      open("whatif");
    },
    look: (focus) => {
      store.dispatch({ type: "look", focus });
      host.putInUrl("view", store.state.view);
      host.putInUrl("mark", spanText(focus));
    },
    refresh: () => poller.now(),
  };
}

/** Starts the poller, and stops it for as long as nobody can see the tab. */
function pollWhileShown(poller: Poller): void {
  const update = () => (host.isHidden() ? poller.pause() : poller.now());
  host.onVisibilityChange(update);
  update();
}

/** Asks for the list, then for the chosen recording. Returns what went wrong, if something did. */
async function askAll(store: Store, client: Client, signal: AbortSignal): Promise<string | undefined> {
  const runs = await client.runs(signal);
  if (runs.kind !== "ok") return runs.kind === "failed" ? runs.message : undefined;
  store.dispatch({ type: "runs", list: runs.value });
  const entry = chosenEntry(store.state);
  const key = store.state.chosen;
  if (!entry || key === undefined) return undefined;
  const answer = await client.report(entry.id, signal);
  if (answer.kind === "ok") store.dispatch({ type: "report", key, answer: answer.value });
  if (answer.kind === "pending") store.dispatch({ type: "report", key, answer: { id: entry.id, ...answer.value } });
  return answer.kind === "failed" ? answer.message : undefined;
}
