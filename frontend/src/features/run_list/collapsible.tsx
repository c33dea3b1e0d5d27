// The list of trainings, which collapses to a button on narrow pages.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useMedia } from "../../shared/page/media";
import type { RunEntry } from "../../shared/report";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";

const NARROW = "(max-width: 1000px)"; // narrower, the report beside the list would have less than 700 px

interface Props {
  readonly current: RunEntry | undefined;
  readonly status: ComponentChildren;
  readonly children: (close: () => void) => ComponentChildren;
}

/** On a wide page the list is beside the report. On a narrow one a button above the report opens the list. */
export function Collapsible({ current, status, children }: Props) {
  const narrow = useMedia(NARROW);
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!narrow || !open) return undefined;
    root.current?.querySelector<HTMLElement>(".listbox")?.focus();
    const closeIfOutside = (event: Event) => {
      if (event instanceof KeyboardEvent) return event.key === "Escape" ? close() : undefined;
      return root.current?.contains(event.target as globalThis.Node) ? undefined : setOpen(false);
    };
    const events = ["pointerdown", "focusin", "keydown"] as const;
    for (const event of events) document.addEventListener(event, closeIfOutside);
    return () => {
      for (const event of events) document.removeEventListener(event, closeIfOutside);
    };
  }, [narrow, open]);
  if (!narrow) {
    return (
      <nav class="runs" aria-label="Trainings">
        <header>
          <h2>Trainings</h2>
          {status}
        </header>
        {children(() => undefined)}
      </nav>
    );
  }
  return (
    <nav class={open ? "runs collapsible open" : "runs collapsible"} aria-label="Trainings" ref={root}>
      <button type="button" class="chooser-button" aria-expanded={open} aria-controls="recordings" ref={button} onClick={() => setOpen(!open)}>
        <span class="visually-hidden">Trainings, shown: </span>
        <span class="name">{current ? <RecordingName of={current} /> : "Choose a training"}</span>
        {status}
        <Icon name="open" />
      </button>
      <div class="collapsed-list" id="recordings" hidden={!open}>
        {open && children(close)}
      </div>
    </nav>
  );
}
