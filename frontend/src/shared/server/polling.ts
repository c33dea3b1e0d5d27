// Repeats a request until the server has computed the answer.
import type { Answer, Settled } from "./api";

const AGAIN_MS = 250;

/** The first answer that is not pending. Calls `onProgress` with the share done, 0 to 1, before each repetition. */
export async function settled<T>(
  ask: () => Promise<Answer<T>>,
  signal: AbortSignal,
  onProgress: (progress: number) => void = () => undefined,
): Promise<Settled<T>> {
  for (;;) {
    const answer = await ask();
    if (signal.aborted) return { kind: "aborted" };
    if (answer.kind !== "pending") return answer;
    onProgress(answer.value.progress);
    await rest(AGAIN_MS, signal);
    if (signal.aborted) return { kind: "aborted" };
  }
}

function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
