// Ties the store to the server and to the host: what is asked when, and what a click or a URL does.
import type { Client } from "./api";
import * as host from "./host";
import { Poller } from "./poller";
import { chosenEntry, entryOf, pollDelay, type Key } from "./state";
import type { Store } from "./store";

export interface Session {
  readonly choose: (key: Key) => void;
  readonly refresh: () => void;
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
    const key = host.runInUrl();
    if (key !== undefined && key !== store.state.chosen) show(key);
  };

  host.onUrlChange(followUrl);
  host.onReload(() => {
    if (!host.isHidden()) poller.now(); // a hidden tab asks as soon as it is shown
  });
  pollWhileShown(poller);
  return {
    choose: (key) => {
      host.putRunInUrl(key);
      show(key);
    },
    refresh: () => poller.now(),
  };
}

/** Starts the poller, and stops it for as long as nobody can see the tab. */
function pollWhileShown(poller: Poller): void {
  let hidden = true;
  const update = () => {
    if (host.isHidden() === hidden) return;
    hidden = !hidden;
    if (hidden) poller.pause();
    else poller.now();
  };
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
  return answer.kind === "failed" ? answer.message : undefined;
}
