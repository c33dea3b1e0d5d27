// Repeats a request until the server has finished the work that it needs.
import type { Result } from "./result";

const INTERVAL_MS = 250;

/** How far the server's work on a request is. */
export interface JobStatus {
  readonly state: string; // waiting | analysing | done | failed
  readonly progress: number; // 0 to 1
  readonly problem: string; // the reason, if it failed
}

/** Returns the response whose state is "done". Calls `onProgress` (0 to 1) after each earlier response. */
export async function poll<T extends JobStatus>(
  request: () => Promise<Result<T>>,
  signal: AbortSignal,
  onProgress: (progress: number) => void = () => undefined,
): Promise<Result<T>> {
  for (;;) {
    const result = await request();
    if (result.kind !== "ok" || result.value.state === "done") return signal.aborted ? { kind: "aborted" } : result;
    if (result.value.state === "failed") return { kind: "failed", message: result.value.problem };
    onProgress(result.value.progress);
    await pause(INTERVAL_MS, signal);
    if (signal.aborted) return { kind: "aborted" };
  }
}

/** Resolves after the time, or as soon as the signal is aborted. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
