// Asks again while the server still reads the recording.
import type { Answer } from "./api";

export const AGAIN_MS = 250;

interface Staged {
  readonly state: string; // waiting | analysing | done | failed
  readonly progress: number;
  readonly problem: string;
}

/** The answer once it is done. `tell` hears how far it is, 0 to 1; what failed has a sentence. */
export async function settled<T extends Staged>(
  ask: () => Promise<Answer<T>>,
  signal: AbortSignal,
  tell: (progress: number) => void,
): Promise<Answer<T>> {
  for (;;) {
    const answer = await ask();
    if (answer.kind !== "ok" || answer.value.state === "done") return signal.aborted ? { kind: "aborted" } : answer;
    if (answer.value.state === "failed") return { kind: "failed", message: answer.value.problem };
    tell(answer.value.progress);
    await rest(AGAIN_MS, signal);
    if (signal.aborted) return { kind: "aborted" };
  }
}

export function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
