// The list of recordings, folded into a button where there is no room for it beside the answer.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useMedia } from "../../shared/page/media";
import type { RunEntry } from "../../shared/report";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";

const NARROW = "(max-width: 1000px)"; // beside the list a report would have less than 700 px

interface FoldingProps {
  readonly now: RunEntry | undefined;
  readonly status: ComponentChildren;
  readonly children: (done: () => void) => ComponentChildren;
}

/** Where there is room the list stands beside the answer. Where there is not, the answer comes first, and a button over it opens the list. */
export function Folding({ now, status, children }: FoldingProps) {
  const narrow = useMedia(NARROW);
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const done = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!narrow || !open) return undefined;
    root.current?.querySelector<HTMLElement>(".listbox")?.focus();
    const leave = (event: Event) => {
      if (event instanceof KeyboardEvent) return event.key === "Escape" ? done() : undefined;
      return root.current?.contains(event.target as globalThis.Node) ? undefined : setOpen(false);
    };
    const events = ["pointerdown", "focusin", "keydown"] as const;
    for (const event of events) document.addEventListener(event, leave);
    return () => {
      for (const event of events) document.removeEventListener(event, leave);
    };
  }, [narrow, open]);
  if (!narrow) {
    return (
      <nav class="runs" aria-label="Recordings">
        <header>
          <h2>Recordings</h2>
          {status}
        </header>
        {children(() => undefined)}
      </nav>
    );
  }
  return (
    <nav class={open ? "runs folding open" : "runs folding"} aria-label="Recordings" ref={root}>
      <button type="button" class="chooser-button" aria-expanded={open} aria-controls="recordings" ref={button} onClick={() => setOpen(!open)}>
        <span class="spoken">Recordings, shown: </span>
        <span class="name">{now ? <RecordingName of={now} /> : "Choose a recording"}</span>
        {status}
        <Icon name="open" />
      </button>
      <div class="folded" id="recordings" hidden={!open}>
        {open && children(done)}
      </div>
    </nav>
  );
}

