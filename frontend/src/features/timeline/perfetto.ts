// Hands a trace to Perfetto's own page, in a window that the user opened by a click: the only address outside of our
// server that the tab knows. The trace goes from window to window and is not uploaded.

const VIEWER = "https://ui.perfetto.dev";
const ASK_MS = 100;
const PATIENCE_MS = 20_000;

export function openViewer(): Window | null {
  return window.open(VIEWER);
}

/** Whether the viewer took the trace. It is asked whether it is there until it answers. */
export function handOver(viewer: Window, buffer: ArrayBuffer, title: string): Promise<boolean> {
  return new Promise((resolve) => {
    const began = Date.now();
    const asking = setInterval(() => {
      if (viewer.closed || Date.now() - began > PATIENCE_MS) return done(false);
      viewer.postMessage("PING", VIEWER);
    }, ASK_MS);
    const hear = ({ data, source, origin }: MessageEvent<unknown>) => {
      if (data !== "PONG" || source !== viewer || origin !== VIEWER) return;
      viewer.postMessage({ perfetto: { buffer, title, fileName: `${title}.json` } }, VIEWER, [buffer]);
      done(true);
    };
    const done = (taken: boolean) => {
      clearInterval(asking);
      window.removeEventListener("message", hear);
      resolve(taken);
    };
    window.addEventListener("message", hear);
  });
}
