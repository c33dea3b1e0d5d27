// The page that embeds the tab: TensorBoard's messages, theme, URL and visibility.
//
// The iframe is same-origin, so theme and URL are read from the parent window. If the page has another origin, these
// reads throw: the tab then follows the theme of the browser and stores no state in the URL.
import { valueIn, withValue } from "./hash";

const PREFIX = "p.tb_bottleneck.";

interface TensorBoardPage extends globalThis.Window {
  readonly tensorboard?: {
    readonly tf_storage?: {
      readonly setString?: (key: string, value: string, options: { readonly useLocationReplace: boolean }) => void;
    };
  };
}

/** The window whose URL and theme are used: TensorBoard's, our own without TensorBoard, undefined across origins. */
function page(): TensorBoardPage | undefined {
  try {
    void window.parent.location.hash;
    return window.parent;
  } catch (error) {
    if (error instanceof DOMException) return undefined;
    throw error;
  }
}

/** The parameters of the tab in the URL; app/address.ts says what they mean. */
export type UrlKey = "run" | "view" | "at" | "mark" | "with" | "row" | "if" | "all" | "tree";

export function inUrl(key: UrlKey): string | undefined {
  return valueIn(page()?.location.hash ?? "", PREFIX + key) || undefined;
}

/** Writes a parameter into the URL, in a new history entry or in the same one. An empty value removes it. */
export function putInUrl(key: UrlKey, value: string, entry: "new" | "same"): void {
  const host = page();
  const storage = host?.tensorboard?.tf_storage;
  if (storage?.setString) {
    storage.setString(PREFIX + key, value, { useLocationReplace: entry === "same" });
  } else if (host) {
    const hash = withValue(host.location.hash, PREFIX + key, value);
    if (entry === "new") host.history.pushState(null, "", hash);
    else host.history.replaceState(host.history.state, "", hash);
  }
}

export function onUrlChange(listener: () => void): void {
  page()?.addEventListener("hashchange", listener);
}

/** Keeps `data-theme` on the root element equal to TensorBoard's theme, or without TensorBoard to the browser's. */
export function followTheme(): void {
  const host = page();
  const preference = window.matchMedia("(prefers-color-scheme: dark)");
  const inTensorBoard = host !== undefined && host !== window;
  const apply = () => {
    const dark = inTensorBoard ? host.document.body.classList.contains("dark-mode") : preference.matches;
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  };
  apply();
  if (inTensorBoard) {
    new MutationObserver(apply).observe(host.document.body, { attributeFilter: ["class"] });
  } else {
    preference.addEventListener("change", apply);
  }
}

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

/** Returns a function that removes the listener. */
export function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}

/** The full address of this view. */
export function address(): string {
  return (page() ?? window).location.href;
}

/** TensorBoard hides a tab by giving its iframe no height; `visibilityState` does not show that. */
export function isHidden(): boolean {
  return window.innerHeight === 0 || document.visibilityState === "hidden";
}

/** Calls the listener when the tab is shown or hidden. Returns a function that removes the listener. */
export function onVisibilityChange(listener: () => void): () => void {
  let hidden = isHidden();
  const update = () => {
    if (isHidden() === hidden) return;
    hidden = !hidden;
    listener();
  };
  window.addEventListener("resize", update);
  document.addEventListener("visibilitychange", update);
  return () => {
    window.removeEventListener("resize", update);
    document.removeEventListener("visibilitychange", update);
  };
}

/** Opens TensorBoard's message port and calls the listener on each reload, by button or automatic. */
export function onReload(listener: () => void): void {
  if (window.parent === window) return;
  const channel = new MessageChannel();
  channel.port1.onmessage = ({ data }: MessageEvent<unknown>) => {
    const message = parsed(data);
    if (!message || message["isReply"] === true) return;
    const reply = { type: message["type"], id: message["id"], payload: null, error: null, isReply: true };
    channel.port1.postMessage(JSON.stringify(reply));
    if (message["type"] === "experimental.DataReloaded") listener();
  };
  // Any target origin is safe: only the port is sent.
  window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
}

/** Parses a message of the host, which is a JSON object. Undefined for any other message. */
function parsed(data: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const message: unknown = JSON.parse(data);
    return typeof message === "object" && message !== null ? (message as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
