// What the tab has of the page around it: TensorBoard's messages, its theme, its URL, and whether it shows us.
//
// The iframe is same-origin, so theme and URL are read off the parent. Inside a page of another origin these reads
// throw: then the tab follows the browser's own theme and keeps its state to itself.
import { valueIn, withValue } from "./hash";

const RUN_KEY = "p.tb_bottleneck.run";

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

/** The recording that the URL names, as `run/source`. */
export function runInUrl(): string | undefined {
  return valueIn(page()?.location.hash ?? "", RUN_KEY);
}

/** Writes the recording into the URL without making a history entry. */
export function putRunInUrl(key: string): void {
  const host = page();
  const storage = host?.tensorboard?.tf_storage;
  if (storage?.setString) {
    storage.setString(RUN_KEY, key, { useLocationReplace: true });
  } else if (host) {
    host.history.replaceState(host.history.state, "", withValue(host.location.hash, RUN_KEY, key));
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

/** TensorBoard hides a tab by giving its iframe no height; `visibilityState` alone does not tell. */
export function isHidden(): boolean {
  return window.innerHeight === 0 || document.visibilityState === "hidden";
}

export function onVisibilityChange(listener: () => void): void {
  window.addEventListener("resize", listener);
  document.addEventListener("visibilitychange", listener);
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
