// Which recordings to compare with: a button for each, nearest relatives first, a box to take several, a filter where there are many.
import { useMemo, useRef, useState } from "preact/hooks";
import { candidates } from "./candidates";
import { colourOf } from "../../shared/colours";
import { count, duration, shortShare } from "../../shared/text/format";
import { runName, sourceName } from "../../shared/text/names";
import { moved } from "../../shared/widgets/list_navigation";
import type { RunEntry } from "../../shared/report";
import { inOrder } from "../series/members";
import { MOST } from "../series/series_keys";
import type { Session } from "../../app/session";
import { keyOf, type Key } from "../../app/state";
import { withoutVerdict } from "../../shared/text/vocabulary";

const FILTER_FROM = 9; // fewer can be seen at once

interface Props {
  readonly runs: readonly RunEntry[];
  readonly chosen: RunEntry;
  readonly missing: Key | undefined; // was asked for and cannot be compared with
  readonly taken: readonly Key[]; // for a row, when this is opened
  readonly session: Session;
}

export function Chooser({ runs, chosen, missing, taken: first, session }: Props) {
  const [filter, setFilter] = useState("");
  const root = useRef<HTMLDivElement>(null);
  const { shown, left, all } = useMemo(() => candidates(runs, chosen, filter), [runs, chosen, filter]);
  const [last, reach] = useState<Key>(); // where the keyboard is: of all the rows, one is a stop for Tab
  const [ticked, setTicked] = useState<readonly Key[]>(first);
  const taken = ticked.filter((key) => key !== keyOf(chosen) && runs.some((entry) => keyOf(entry) === key));
  const seen = shown.flatMap(({ entries }) => entries.map(keyOf));
  const reached = last !== undefined && seen.includes(last) ? last : seen[0];
  const take = (key: Key, on: boolean) => setTicked(on ? [...taken, key] : taken.filter((one) => one !== key));
  const walk = (event: KeyboardEvent) => {
    const buttons = [...(root.current?.querySelectorAll("button") ?? [])];
    const target = moved(event.key, buttons.findIndex((one) => one.closest("li")?.contains(document.activeElement)), buttons.length);
    if (target === undefined) return;
    buttons[target]?.focus();
    event.preventDefault();
  };
  return (
    <section class="chooser">
      <h2>Compare with…</h2>
      {missing !== undefined && (
        <p class="notice" role="status">
          <code>{missing}</code> cannot be compared with this recording: it is not a trace under the logdir (any more). Choose another one.
        </p>
      )}
      {all === 0 ? (
        <p class="measure">
          There is no other trace under the logdir. Record a second run, with another batch size, loader or device, into a directory of its
          own below the logdir: it appears here by itself.
        </p>
      ) : (
        <>
          <p class="measure muted">
            The recording that you choose becomes A, this one is B: what B gained or lost against A, regime by regime, and why. A Shift-click, or
            Shift and Enter, on a row of the list of recordings compares at once. Tick several to lay them in a row with this one: a sweep, or
            the same training again and again.
          </p>
          {all >= FILTER_FROM && (
            <input type="search" placeholder="Filter by name or verdict" aria-label="Filter what to compare with" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          )}
          <div class="candidates" ref={root} onKeyDown={walk}>
            {shown.map(({ run, entries }) => (
              <ul key={run} aria-label={runName(run)}>
                {entries.map((entry) => (
                  <li key={keyOf(entry)} onFocusCapture={() => reach(keyOf(entry))}>
                    <label>
                      <input
                        type="checkbox"
                        tabIndex={keyOf(entry) === reached ? 0 : -1}
                        aria-label={`Take ${runName(entry.run)} ${sourceName(entry.source)} into a row`}
                        checked={taken.includes(keyOf(entry))}
                        disabled={taken.length + 1 >= MOST && !taken.includes(keyOf(entry))}
                        onChange={(event) => take(keyOf(entry), event.currentTarget.checked)}
                      />
                    </label>
                    <button type="button" class="candidate" tabIndex={keyOf(entry) === reached ? 0 : -1} onClick={() => session.compare(keyOf(entry))}>
                      <span class="name">
                        <b><bdi>{runName(entry.run)}</bdi></b> <bdi class="muted">{sourceName(entry.source)}</bdi>
                      </span>
                      <State entry={entry} />
                      <span class="figure">{duration(entry.step_ns)}</span>
                    </button>
                  </li>
                ))}
              </ul>
            ))}
          </div>
          {shown.length === 0 && <p class="muted">No recording matches this filter.</p>}
          {left > 0 && <p class="muted">{count(left)} more: filter by name or verdict to find them.</p>}
          <Basket taken={taken} seen={seen} setTaken={setTicked} lineUp={() => session.lineUp(inOrder([...taken, keyOf(chosen)]))} />
        </>
      )}
      {chosen.verdict && (
        <p>
          <button type="button" class="link" onClick={() => session.open("whatif")}>
            Or against this run itself, on another device, with more workers, another batch or precision
          </button>
        </p>
      )}
    </section>
  );
}

interface BasketProps {
  readonly taken: readonly Key[];
  readonly seen: readonly Key[]; // what the filter leaves
  readonly setTaken: (keys: readonly Key[]) => void;
  readonly lineUp: () => void;
}

/** What is taken for a row, beside the chosen recording. It stays in sight below a long list. */
function Basket({ taken, seen, setTaken, lineUp }: BasketProps) {
  const all = [...new Set([...taken, ...seen])];
  const room = seen.length > 1 && all.length > taken.length && all.length < MOST;
  if (taken.length === 0 && !room) return null;
  const said = ["Tick recordings to lay them in a row with this one.", "One more makes a row; the two alone are compared by a press on the name."];
  return (
    <div class="basket">
      <p role="status">{said[taken.length] ?? `${count(taken.length + 1)} recordings with this one${taken.length + 1 === MOST ? ", no more fit into a row" : ""}.`}</p>
      {room && (
        <button type="button" onClick={() => setTaken(all)}>
          Take all {count(seen.length)}
        </button>
      )}
      {taken.length > 0 && (
        <button type="button" onClick={() => setTaken([])}>
          Clear
        </button>
      )}
      {taken.length > 1 && (
        <button type="button" class="first" onClick={lineUp}>
          Lay in a row
        </button>
      )}
    </div>
  );
}

function State({ entry: { state, verdict, health: status, reason: code } }: { entry: RunEntry }) {
  if (state !== "done") return <span class="muted">{state}</span>;
  if (!verdict) return <span class="muted">{withoutVerdict(status, code)}</span>;
  return (
    <span>
      <span class="dot inline" style={{ background: colourOf(verdict.regime) }} />
      {verdict.title || verdict.regime} {shortShare(verdict.share)}
    </span>
  );
}
