// The list of keyboard shortcuts.
import { useEffect, useRef } from "preact/hooks";
import { addStyle } from "../shared/page/style_sheet";
import sheet from "./shortcuts_panel.css";

addStyle(sheet);

interface Props {
  readonly shortcuts: readonly { readonly key: string; readonly text: string }[];
  readonly close: () => void;
}

/** Other keys with a meaning everywhere. */
const OTHERS: readonly (readonly [string, string])[] = [
  ["Shift Enter", "In the list: compare with this recording"],
  ["Alt ←", "Back"],
  ["?", "Show or hide this panel"],
];

export function ShortcutsPanel({ shortcuts, close }: Props) {
  const panel = useRef<HTMLDialogElement>(null);
  useEffect(() => panel.current?.showModal(), []);
  return (
    <dialog class="shortcuts" aria-labelledby="shortcuts-title" ref={panel} onClose={close}>
      <h2 id="shortcuts-title">Keyboard shortcuts</h2>
      <dl>
        {[...shortcuts.map(({ key, text }) => [key, text] as const), ...OTHERS].map(([keys, text]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}
