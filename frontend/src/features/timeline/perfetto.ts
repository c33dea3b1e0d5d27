// Opens a trace in Perfetto's page, in a window that the user opened with a click. This is the only address outside of
// our server in the tab. The trace is passed from window to window and is not uploaded.

const VIEWER = "https://ui.perfetto.dev";
const PING_MS = 100;
const TIMEOUT_MS = 20_000;

export function openViewer(): Window | null {
  return window.open(VIEWER);
}

/** Sends the trace to the viewer. Resolves to false if the viewer does not respond. */
export function sendTrace(viewer: Window, buffer: ArrayBuffer, title: string): Promise<boolean> {
  return new Promise((resolve) => {
    const start = Date.now();
    const timer = setInterval(() => {
      if (viewer.closed || Date.now() - start > TIMEOUT_MS) return done(false);
      viewer.postMessage("PING", VIEWER);
    }, PING_MS);
    const onMessage = ({ data, source, origin }: MessageEvent<unknown>) => {
      if (data !== "PONG" || source !== viewer || origin !== VIEWER) return;
      viewer.postMessage({ perfetto: { buffer, title, fileName: `${title}.json` } }, VIEWER, [buffer]);
      done(true);
    };
    const done = (sent: boolean) => {
      clearInterval(timer);
      window.removeEventListener("message", onMessage);
      resolve(sent);
    };
    window.addEventListener("message", onMessage);
  });
}
