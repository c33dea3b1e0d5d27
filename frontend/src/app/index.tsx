// The module that TensorBoard imports into the plugin's iframe; it calls render() once.
import { render as draw } from "preact";
import { Client } from "../shared/server/api";
import { followTheme } from "../shared/page/host";
import { startSession, stateInUrl } from "./session";
import { addStyle } from "../shared/page/style_sheet";
import { START } from "./state";
import { Store } from "./store";
import { style } from "./style";
import { App } from "./app";

export function render(): void {
  addStyle(style);
  document.title = "Bottlenecks";
  document.documentElement.lang = "en";
  followTheme();
  const store = new Store(stateInUrl(START));
  const session = startSession(store, new Client(window.fetch.bind(window)));
  draw(<App store={store} session={session} />, document.body);
}
