// Keyboard shortcuts, and the panel that lists them.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { VIEWS } from "../shared/run/views";
import { missingBecause, titleOf } from "./available_views";
import type { Shown } from "./view_registry";

/** What the shortcuts act on. `shown` is undefined as long as no recording is shown. */
interface Page {
  readonly shown: Shown | undefined;
  /** Chooses the recording that is this many rows further down the list. */
  readonly move: (rows: 1 | -1) => void;
}

interface Shortcut {
  readonly key: string;
  readonly text: string;
  readonly run: (page: Page) => void;
}

const SHORTCUTS: readonly Shortcut[] = [
  { key: "j", text: "Next recording", run: ({ move }) => move(1) },
  { key: "k", text: "Previous recording", run: ({ move }) => move(-1) },
  { key: "/", text: "Filter the recordings", run: () => document.querySelector<HTMLElement>(".runs input[type=search]")?.focus() },
  ...VIEWS.map((view, index) => ({
    key: `${index + 1}`,
    text: titleOf(view),
    run: ({ shown }: Page) => {
      if (shown && missingBecause(view, shown.report, shown.entry) === undefined) shown.session.open(view);
    },
  })),
];

/** Other keys with a meaning everywhere, for the panel. */
const OTHERS: readonly (readonly [string, string])[] = [
  ["Shift Enter", "In the list: compare with this recording"],
  ["Alt ←", "Back"],
  ["?", "Show or hide this panel"],
];

const isTyping = (target: EventTarget | null) => target instanceof HTMLElement && target.matches("input, select, textarea, [contenteditable]");

/** Handles the shortcuts, and shows the panel on "?". */
export function Shortcuts(page: Page) {
  const panel = useRef<HTMLDialogElement>(null);
  const latest = useRef(page);
  latest.current = page;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const shortcut = SHORTCUTS.find(({ key }) => key === event.key);
      if (event.key === "?") toggle(panel.current);
      else if (shortcut && !panel.current?.open) shortcut.run(latest.current);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <>
      <button type="button" class="small shortcuts-button" title="Keyboard shortcuts" aria-label="Keyboard shortcuts" onClick={() => toggle(panel.current)}>
        ?
      </button>
      <dialog class="shortcuts" aria-labelledby="shortcuts-title" ref={panel}>
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl>
          {SHORTCUTS.map(({ key, text }) => (
            <Row key={key} keys={key}>
              {text}
            </Row>
          ))}
          {OTHERS.map(([keys, text]) => (
            <Row key={keys} keys={keys}>
              {text}
            </Row>
          ))}
        </dl>
        <form method="dialog">
          <button>Close</button>
        </form>
      </dialog>
    </>
  );
}

function toggle(panel: HTMLDialogElement | null): void {
  if (panel?.open) panel.close();
  else panel?.showModal();
}

function Row({ keys, children }: { keys: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>
        {keys.split(" ").map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
