// What the tab has of the page around it: TensorBoard's messages, its theme, its URL, and whether it shows us.
//
// The iframe is same-origin, so theme and URL are read off the parent. Inside a page of another origin these reads
// throw: then the tab follows the browser's own theme and keeps its state to itself.
import { valueIn, withValue } from "./hash";

const PREFIX = "p.tb_bottleneck.";

interface TensorBoardPage extends globalThis.Window {
  readonly tensorboard?: {
    readonly tf_storage?: {
      readonly setString?: (key: string, value: string, options: { readonly useLocationReplace: boolean }) => void;
    };
  };
}

/** The window whose URL and theme we follow: TensorBoard's, ours where there is none, nothing across origins. */
function page(): TensorBoardPage | undefined {
  try {
    void window.parent.location.hash;
    return window.parent;
  } catch (error) {
    if (error instanceof DOMException) return undefined;
    throw error;
  }
}

/** What the URL says: the recording (`run/source`), the view of it, the stretch shown and the one marked (`begin-end`, ns), what it is compared with, the row it stands in, and what is supposed of it. */
export type UrlKey = "run" | "view" | "at" | "mark" | "with" | "row" | "if";

export function inUrl(key: UrlKey): string | undefined {
  return valueIn(page()?.location.hash ?? "", PREFIX + key) || undefined;
}

/** Writes it into the URL without making a history entry; an empty value takes it out. */
export function putInUrl(key: UrlKey, value: string): void {
  const host = page();
  if ((inUrl(key) ?? "") === value) return;
  const storage = host?.tensorboard?.tf_storage;
  if (storage?.setString) {
    storage.setString(PREFIX + key, value, { useLocationReplace: true });
  } else if (host) {
    host.history.replaceState(host.history.state, "", withValue(host.location.hash, PREFIX + key, value));
  }
}

export function onUrlChange(listener: () => void): void {
  page()?.addEventListener("hashchange", listener);
}

/** Keeps `data-theme` on our root element equal to TensorBoard's theme, or to the browser's where it is alone. */
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

/** Returns what ends it. */
export function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}

/** The whole address of this view, to be shared. */
export function address(): string {
  return (page() ?? window).location.href;
}

/** TensorBoard hides a tab by giving its iframe no height; `visibilityState` alone does not tell. */
export function isHidden(): boolean {
  return window.innerHeight === 0 || document.visibilityState === "hidden";
}

/** Calls the listener when the tab may have been shown or hidden. Returns what ends it. */
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
  // The port is all that is sent, and whoever embeds us may have it: hence any origin.
  window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
}

/** The host's messages are JSON objects; anything else is not for us. */
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
