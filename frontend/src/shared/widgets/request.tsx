// What a view asks the server for when it is opened: shown while it is awaited, when it failed, and once it is there.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Settled } from "../server/api";

type Phase<T> =
  | { readonly is: "asking"; readonly progress: number }
  | { readonly is: "there"; readonly value: T }
  | { readonly is: "failed"; readonly message: string };

interface Props<T> {
  /** What is asked about: another one makes the question anew, and an answer about the last one is dropped. */
  readonly about: string;
  /** Whatever the answer rests on: when this is another object, it is asked again, and the old answer stays until then. */
  readonly since: unknown;
  readonly ask: (signal: AbortSignal, tell: (progress: number) => void) => Promise<Settled<T>>;
  readonly waiting: string;
  readonly children: (value: T) => ComponentChildren;
}

export function Awaited<T>({ about, since, ask, waiting, children }: Props<T>) {
  const [phase, setPhase] = useState<Phase<T>>({ is: "asking", progress: 0 });
  const [tries, setTries] = useState(0);
  const last = useRef({ about, tries });
  useEffect(() => {
    const leaving = new AbortController();
    const anew = last.current.about !== about || last.current.tries !== tries;
    last.current = { about, tries };
    if (anew) setPhase({ is: "asking", progress: 0 });
    void ask(leaving.signal, (progress) => {
      if (!leaving.signal.aborted) setPhase((now) => (now.is === "there" ? now : { is: "asking", progress }));
    }).then((answer) => {
      if (leaving.signal.aborted || answer.kind === "aborted") return;
      setPhase(answer.kind === "ok" ? { is: "there", value: answer.value } : { is: "failed", message: answer.message });
    });
    return () => leaving.abort();
  }, [about, since, tries]);

  switch (phase.is) {
    case "there":
      return <>{children(phase.value)}</>;
    case "asking":
      return (
        <div class="awaited late" role="status">
          <p class="muted">{waiting}</p>
          {phase.progress > 0 ? <progress value={phase.progress} max={1} aria-label={waiting} /> : <progress aria-label={waiting} />}
        </div>
      );
    case "failed":
      return (
        <div class="awaited" role="status">
          <p>{phase.message}</p>
          <button type="button" onClick={() => setTries(tries + 1)}>
            Ask again
          </button>
        </div>
      );
  }
}
