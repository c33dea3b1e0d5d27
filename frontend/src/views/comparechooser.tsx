// Which recording to compare with: buttons, nearest relatives first, and a filter where there are many.
import { useMemo, useRef, useState } from "preact/hooks";
import { candidates } from "../compare/candidates";
import { colourOf } from "../colours";
import { count, duration, runName, shortShare, sourceName } from "../format";
import { moved } from "../listkeys";
import type { RunEntry } from "../report";
import { keyOf, type Key } from "../state";
import { withoutVerdict } from "../vocabulary";

const FILTER_FROM = 9; // fewer can be seen at once

interface Props {
  readonly runs: readonly RunEntry[];
  readonly chosen: RunEntry;
  readonly missing: Key | undefined; // was asked for and cannot be compared with
  readonly compare: (key: Key) => void;
}

export function Chooser({ runs, chosen, missing, compare }: Props) {
  const [filter, setFilter] = useState("");
  const root = useRef<HTMLDivElement>(null);
  const { shown, left, all } = useMemo(() => candidates(runs, chosen, filter), [runs, chosen, filter]);
  const walk = (event: KeyboardEvent) => {
    const buttons = [...(root.current?.querySelectorAll("button") ?? [])];
    const target = moved(event.key, buttons.findIndex((one) => one === document.activeElement), buttons.length);
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
            Shift and Enter, on a row of the list of recordings compares at once.
          </p>
          {all >= FILTER_FROM && (
            <input type="search" placeholder="Filter by name or verdict" aria-label="Filter what to compare with" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          )}
          <div ref={root} onKeyDown={walk}>
            {shown.map(({ run, entries }) => (
              <ul key={run} aria-label={runName(run)}>
                {entries.map((entry) => (
                  <li key={keyOf(entry)}>
                    <button type="button" class="candidate" onClick={() => compare(keyOf(entry))}>
                      <span class="name">
                        <b>{runName(entry.run)}</b> <span class="muted">{sourceName(entry.source)}</span>
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
        </>
      )}
    </section>
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
