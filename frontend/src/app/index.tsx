// The module that TensorBoard imports into the plugin's iframe. It calls render() once.
import { render as renderTree } from "preact";
import { followTheme } from "../shared/page/host";
import { addStyle } from "../shared/page/style_sheet";
import { Client } from "../shared/server/api";
import { App } from "./app";
import { startSession, stateFromUrl } from "./start_session";
import { START } from "./state";
import { Store } from "./store";
import { style } from "./style";

export function render(): void {
  addStyle(style);
  document.title = "Bottlenecks";
  document.documentElement.lang = "en";
  followTheme();
  const store = new Store(stateFromUrl(START));
  const session = startSession(store, new Client(window.fetch.bind(window)));
  renderTree(<App store={store} session={session} />, document.body);
}
