// The module that TensorBoard imports into the plugin's iframe; it calls render() once.
import { render as draw } from "preact";
import { Client } from "./api";
import { followTheme, runInUrl } from "./host";
import { startSession } from "./session";
import { Store } from "./store";
import { style } from "./style";
import { App } from "./views/app";

export function render(): void {
  const sheet = document.createElement("style");
  sheet.textContent = style;
  document.head.append(sheet);
  document.title = "Bottlenecks";
  document.documentElement.lang = "en";
  followTheme();

  const chosen = runInUrl();
  const store = new Store(chosen === undefined ? { filter: "" } : { filter: "", chosen });
  const session = startSession(store, new Client(window.fetch.bind(window)));
  draw(<App store={store} session={session} />, document.body);
}
