// Sends a request when a view opens and shows its progress, its failure or its result.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Result } from "../server/result";

type Phase<T> =
  | { readonly is: "pending"; readonly progress: number }
  | { readonly is: "done"; readonly value: T }
  | { readonly is: "failed"; readonly message: string };

interface Props<T> {
  /** What is requested. If it changes, the result is discarded and the request is sent again. */
  readonly subject: string;
  /** What the result depends on. If it is another object, the request is sent again and the old result stays until then. */
  readonly version: unknown;
  readonly send: (signal: AbortSignal, onProgress: (progress: number) => void) => Promise<Result<T>>;
  readonly waiting: string;
  readonly children: (value: T) => ComponentChildren;
}

export function Request<T>({ subject, version, send, waiting, children }: Props<T>) {
  const [phase, setPhase] = useState<Phase<T>>({ is: "pending", progress: 0 });
  const [attempt, setAttempt] = useState(0);
  const last = useRef({ subject, attempt });
  useEffect(() => {
    const controller = new AbortController();
    const isNew = last.current.subject !== subject || last.current.attempt !== attempt;
    last.current = { subject, attempt };
    if (isNew) setPhase({ is: "pending", progress: 0 });
    void send(controller.signal, (progress) => {
      if (!controller.signal.aborted) setPhase((now) => (now.is === "done" ? now : { is: "pending", progress }));
    }).then((result) => {
      if (controller.signal.aborted || result.kind === "aborted") return;
      setPhase(result.kind === "ok" ? { is: "done", value: result.value } : { is: "failed", message: result.message });
    });
    return () => controller.abort();
  }, [subject, version, attempt]);

  switch (phase.is) {
    case "done":
      return <>{children(phase.value)}</>;
    case "pending":
      return (
        <div class="request delayed" role="status">
          <p class="muted">{waiting}</p>
          {phase.progress > 0 ? <progress value={phase.progress} max={1} aria-label={waiting} /> : <progress aria-label={waiting} />}
        </div>
      );
    case "failed":
      return (
        <div class="request" role="status">
          <p>{phase.message}</p>
          <button type="button" onClick={() => setAttempt(attempt + 1)}>
            Try again
          </button>
        </div>
      );
  }
}
