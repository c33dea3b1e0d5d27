// Keyboard shortcuts. "?" shows the panel that lists them.
import { useEffect, useRef, useState } from "preact/hooks";
import { VIEWS } from "../shared/run/views";
import { lazyView } from "../shared/widgets/lazy_view";
import { missingBecause, titleOf } from "./available_views";
import { membersOf } from "./state";
import type { Shown } from "./view_registry";

const ShortcutsPanel = lazyView(async () => (await import("./shortcuts_panel")).ShortcutsPanel);

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
    key: `${(index + 1) % 10}`, // one digit: the tenth is 0
    text: titleOf(view),
    run: ({ shown }: Page) => {
      if (shown && missingBecause(view, shown.report, shown.entry, membersOf(shown.state)) === undefined) shown.session.open(view);
    },
  })),
];

const isTyping = (target: EventTarget | null) => target instanceof HTMLElement && target.matches("input, select, textarea, [contenteditable]");

/** Handles the shortcuts, and shows the panel on "?". */
export function Shortcuts(page: Page) {
  const [open, setOpen] = useState(false);
  const latest = useRef({ page, open });
  latest.current = { page, open };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const shortcut = SHORTCUTS.find(({ key }) => key === event.key);
      if (event.key === "?") setOpen(!latest.current.open);
      else if (shortcut && !latest.current.open) shortcut.run(latest.current.page);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <>
      <button type="button" class="small shortcuts-button" title="Keyboard shortcuts" aria-label="Keyboard shortcuts" onClick={() => setOpen(true)}>
        ?
      </button>
      {open && <ShortcutsPanel shortcuts={SHORTCUTS} close={() => setOpen(false)} />}
    </>
  );
}
