// Repeats a request until the server has computed the response.
import type { Attempt, Result } from "./result";

const INTERVAL_MS = 250;

/** The first result that is not pending. Calls `onProgress` (0 to 1) before each repetition. */
export async function poll<T>(
  request: () => Promise<Attempt<T>>,
  signal: AbortSignal,
  onProgress: (progress: number) => void = () => undefined,
): Promise<Result<T>> {
  for (;;) {
    const attempt = await request();
    if (signal.aborted) return { kind: "aborted" };
    if (attempt.kind !== "pending") return attempt;
    onProgress(attempt.value.progress);
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
