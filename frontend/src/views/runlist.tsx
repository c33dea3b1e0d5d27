// The recordings, grouped by run directory: a listbox that is walked with the arrow keys and chosen from with Enter.
import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "../colours";
import { duration, runName, shortShare, sourceName } from "../format";
import { moved } from "../listkeys";
import type { RunEntry, RunList as List } from "../report";
import { groups, keyOf, type Key } from "../state";
import { health, reason, severity } from "../vocabulary";
import { Icon } from "./icon";

const FILTER_FROM = 9; // fewer can be seen at once

interface Props {
  readonly list: List;
  readonly chosen: Key | undefined;
  readonly filter: string;
  readonly choose: (key: Key) => void;
  readonly setFilter: (text: string) => void;
}

export function RunList({ list, chosen, filter, choose, setFilter }: Props) {
  const filterable = list.runs.length >= FILTER_FROM;
  const shown = groups(list.runs, filterable ? filter : "");
  const done = list.runs.filter((entry) => entry.state === "done").length;
  return (
    <nav class="runs" aria-label="Recordings">
      <header>
        <h2>Recordings</h2>
        <span class="muted" role="status">
          {list.state === "scanning" ? "looking for more…" : done < list.runs.length ? `${done} of ${list.runs.length} analysed` : list.runs.length}
        </span>
      </header>
      {filterable && (
        <input
          type="search"
          placeholder="Filter by name or verdict"
          aria-label="Filter recordings by name or verdict"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {shown.length > 0 ? (
        <Listbox shown={shown} chosen={chosen} choose={choose} />
      ) : (
        <p class="muted nothing">No recording matches this filter.</p>
      )}
      <Problems problems={list.problems} />
    </nav>
  );
}

interface ListboxProps {
  readonly shown: ReturnType<typeof groups>;
  readonly chosen: Key | undefined;
  readonly choose: (key: Key) => void;
}

function Listbox({ shown, chosen, choose }: ListboxProps) {
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<Key>();
  const keys = shown.flatMap(({ entries }) => entries.map(keyOf));
  // Exactly one row is in the tab order: where the focus was, else the chosen one, else the first.
  const tabbable = [focused, chosen].find((key) => key !== undefined && keys.includes(key)) ?? keys[0];

  // A recording that the URL names may be far down.
  useEffect(() => root.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [chosen]);

  const onKeyDown = (event: KeyboardEvent) => {
    const current = tabbable === undefined ? -1 : keys.indexOf(tabbable);
    const target = moved(event.key, current, keys.length);
    if (target !== undefined) {
      root.current?.querySelectorAll<HTMLElement>("[role=option]")[target]?.focus();
    } else if ((event.key === "Enter" || event.key === " ") && tabbable !== undefined) {
      choose(tabbable);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div class="listbox" role="listbox" aria-label="Recordings" ref={root} onKeyDown={onKeyDown}>
      {shown.map(({ run, entries }) => (
        <div class="group" role="group" aria-label={runName(run)} key={run}>
          <div class="group-name" title={run} aria-hidden="true">
            {runName(run)}
          </div>
          {entries.map((entry) => {
            const key = keyOf(entry);
            return (
              <div
                key={key}
                class="option"
                role="option"
                aria-selected={key === chosen}
                tabIndex={key === tabbable ? 0 : -1}
                title={entry.source}
                onClick={() => choose(key)}
                onFocus={() => setFocused(key)}
              >
                <Entry entry={entry} />
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}

function Entry({ entry }: { entry: RunEntry }) {
  return (
    <>
      <div class="line">
        <span class="name">{sourceName(entry.source)}</span>
        {entry.step_ns !== undefined && (
          <span class="figure muted" title="Median step time">
            {duration(entry.step_ns)}
          </span>
        )}
      </div>
      <div class="line outcome">
        <Outcome entry={entry} />
      </div>
    </>
  );
}

/** The verdict's chip, or why there is none (yet). */
function Outcome({ entry: { state, progress, verdict, health: status, reason: code } }: { entry: RunEntry }) {
  if (state === "analysing") {
    return (
      <>
        <span class="muted">analysing</span>
        <progress value={progress} max={1} aria-label="Analysed so far" />
      </>
    );
  }
  if (state !== "done") return <span class="muted">{state}</span>;
  if (verdict) {
    return (
      <>
        <span class="dot" style={{ background: colourOf(verdict.regime) }} />
        <span class="what">{verdict.title || verdict.regime}</span>
        <span class={`tone-${severity(verdict.severity).tone}`} title={severity(verdict.severity).text}>
          <Icon name={severity(verdict.severity).icon} />
        </span>
        <span class="figure">{shortShare(verdict.share)}</span>
      </>
    );
  }
  const { icon, tone, text } = health(status);
  return (
    <>
      <span class={`tone-${tone}`}>
        <Icon name={icon} />
      </span>
      <span class="what muted">{code ? `${text.toLowerCase()}: ${reason(code)}` : text.toLowerCase()}</span>
    </>
  );
}

export function Problems({ problems }: { problems: readonly string[] }) {
  if (problems.length === 0) return null;
  return (
    <details class="problems">
      <summary>
        {problems.length === 1 ? "One thing" : `${problems.length} things`} could not be looked at
      </summary>
      <ul>
        {problems.map((problem, index) => (
          <li key={index}>{problem}</li>
        ))}
      </ul>
    </details>
  );
}
