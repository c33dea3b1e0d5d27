// Asks which recordings to compare with: a button and a checkbox for each, the most closely related first.
import { useMemo, useRef, useState } from "preact/hooks";
import { colourOf } from "../../shared/colours";
import type { RunEntry } from "../../shared/report";
import { keyOf, type Key } from "../../shared/run/keys";
import type { Session } from "../../shared/run/session";
import { count, duration, shortShare } from "../../shared/text/format";
import { runName, sourceName, withoutMonitor } from "../../shared/text/names";
import { withoutVerdict } from "../../shared/text/vocabulary";
import { nextInList } from "../../shared/widgets/list_navigation";
import { inNaturalOrder } from "./series/members";
import { MAX_RUNS } from "./series/series_keys";
import { candidates } from "./candidates";

const MIN_ROWS_FOR_FILTER = 9;

interface Props {
  readonly runs: readonly RunEntry[];
  readonly chosen: RunEntry;
  readonly missing: Key | undefined; // was requested and cannot be compared
  readonly initialSelection: readonly Key[]; // for a series
  readonly session: Session;
}

export function Chooser({ runs, chosen, missing, initialSelection, session }: Props) {
  const [filter, setFilter] = useState("");
  const root = useRef<HTMLDivElement>(null);
  const { shown, hidden, total } = useMemo(() => candidates(runs, chosen, filter), [runs, chosen, filter]);
  const [lastFocused, setLastFocused] = useState<Key>(); // Tab focuses one row; the arrow keys move between the rows
  const [checked, setChecked] = useState<readonly Key[]>(initialSelection);
  const selection = checked.filter((key) => key !== keyOf(chosen) && runs.some((entry) => keyOf(entry) === key));
  const listed = shown.flatMap(({ entries }) => entries.map(keyOf));
  const focused = lastFocused !== undefined && listed.includes(lastFocused) ? lastFocused : listed[0];
  const select = (key: Key, on: boolean) => setChecked(on ? [...selection, key] : selection.filter((each) => each !== key));
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(root.current?.querySelectorAll("button") ?? [])];
    const target = nextInList(event.key, buttons.findIndex((button) => button.closest("li")?.contains(document.activeElement)), buttons.length);
    if (target === undefined) return;
    buttons[target]?.focus();
    event.preventDefault();
  };
  return (
    <section class="chooser">
      <h2>Compare with…</h2>
      {missing !== undefined && (
        <p class="notice" role="status">
          <code>{missing}</code> cannot be compared with this recording: it is neither a trace nor the telemetry of a run under the logdir. Choose another one.
        </p>
      )}
      {total === 0 ? (
        <p class="measure">
          There is no other run under the logdir. Record a second run, for example with another batch size, loader or device, into its own
          directory below the logdir. It appears here automatically.
        </p>
      ) : (
        <>
          <p class="measure muted">
            The recording that you choose becomes A, this one is B. The comparison shows what B gained or lost relative to A, per regime, and
            why. Shift-click (or Shift and Enter) in the list of recordings compares directly. Select several for a series with this one: a
            sweep, or repeated runs of the same script.
          </p>
          {total >= MIN_ROWS_FOR_FILTER && (
            <input type="search" placeholder="Filter by name or verdict" aria-label="Filter recordings to compare with" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          )}
          <div class="candidates" ref={root} onKeyDown={onKeyDown}>
            {shown.map(({ run, entries }) => (
              <ul key={run} aria-label={runName(run)}>
                {entries.map((entry) => (
                  <li key={keyOf(entry)} onFocusCapture={() => setLastFocused(keyOf(entry))}>
                    <label>
                      <input
                        type="checkbox"
                        tabIndex={keyOf(entry) === focused ? 0 : -1}
                        aria-label={`Select ${runName(entry.run)} ${sourceName(entry.source)} for a series`}
                        checked={selection.includes(keyOf(entry))}
                        disabled={selection.length + 1 >= MAX_RUNS && !selection.includes(keyOf(entry))}
                        onChange={(event) => select(keyOf(entry), event.currentTarget.checked)}
                      />
                    </label>
                    <button type="button" class="candidate" tabIndex={keyOf(entry) === focused ? 0 : -1} onClick={() => session.compare(keyOf(entry))}>
                      <span class="name">
                        <b><bdi>{withoutMonitor(runName(entry.run))}</bdi></b> <bdi class="muted">{sourceName(entry.source)}</bdi>
                      </span>
                      <EntryState entry={entry} />
                      <span class="figure">{duration(entry.step_ns)}</span>
                    </button>
                  </li>
                ))}
              </ul>
            ))}
          </div>
          {shown.length === 0 && <p class="muted">No recording matches this filter.</p>}
          {hidden > 0 && <p class="muted">{count(hidden)} more: use the filter to find them.</p>}
          <Selection selection={selection} listed={listed} setSelection={setChecked} compare={() => session.compareSeries(inNaturalOrder([...selection, keyOf(chosen)]))} />
        </>
      )}
    </section>
  );
}

interface SelectionProps {
  readonly selection: readonly Key[];
  readonly listed: readonly Key[]; // the recordings that match the filter
  readonly setSelection: (keys: readonly Key[]) => void;
  readonly compare: () => void;
}

/** The selection for a series. It stays visible below a long list. */
function Selection({ selection, listed, setSelection, compare }: SelectionProps) {
  const all = [...new Set([...selection, ...listed])];
  const canSelectAll = listed.length > 1 && all.length > selection.length && all.length < MAX_RUNS;
  if (selection.length === 0 && !canSelectAll) return null;
  const hints = ["Select recordings for a series with this one.", "Select one more for a series, or click the name to compare just these two."];
  const full = selection.length + 1 === MAX_RUNS ? ", the maximum of a series" : "";
  return (
    <div class="selection">
      <p role="status">{hints[selection.length] ?? `${count(selection.length + 1)} recordings with this one${full}.`}</p>
      {canSelectAll && (
        <button type="button" onClick={() => setSelection(all)}>
          Select all {count(listed.length)}
        </button>
      )}
      {selection.length > 0 && (
        <button type="button" onClick={() => setSelection([])}>
          Clear
        </button>
      )}
      {selection.length > 1 && (
        <button type="button" class="first" onClick={compare}>
          Compare as a series
        </button>
      )}
    </div>
  );
}

function EntryState({ entry: { state, verdict, health: status, reason: code } }: { entry: RunEntry }) {
  if (state !== "done") return <span class="muted">{state}</span>;
  if (!verdict) return <span class="muted">{withoutVerdict(status, code)}</span>;
  return (
    <span>
      <span class="dot inline" style={{ background: colourOf(verdict.regime) }} />
      {verdict.title || verdict.regime} {shortShare(verdict.share)}
    </span>
  );
}
