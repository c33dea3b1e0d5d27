// The recordings, grouped by run directory: a listbox that is walked with the arrow keys and chosen from with Enter.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, duration, shortShare } from "../../shared/text/format";
import { runName, shortRun, sourceName } from "../../shared/text/names";
import { moved } from "../../shared/widgets/list_navigation";
import type { RunEntry, RunList as List } from "../../shared/report";
import { near, rowsOf, scrolledTo } from "./visible_rows";
import { groups, keyOf, type Key } from "../../app/state";
import { health, severity } from "../../shared/text/vocabulary";
import { Folding } from "./collapsible";
import { Entry } from "./run_entry";

const FILTER_FROM = 9; // fewer can be seen at once

interface Props {
  readonly list: List;
  readonly chosen: Key | undefined;
  readonly filter: string;
  readonly choose: (key: Key) => void;
  readonly compare: (key: Key) => void; // the chosen one with this one
  readonly setFilter: (text: string) => void;
}

export function RunList(props: Props) {
  const { list, chosen } = props;
  const entry = list.runs.find((one) => keyOf(one) === chosen);
  return (
    <Folding now={entry} status={<Status list={list} />}>
      {(done) => <Contents {...props} choose={(key) => (props.choose(key), done())} compare={(key) => (props.compare(key), done())} />}
    </Folding>
  );
}

/** How many there are, or how far they are analysed. */
function Status({ list }: { list: List }) {
  const done = useMemo(() => list.runs.filter((entry) => entry.state === "done").length, [list.runs]);
  return (
    <span class="muted count" role="status">
      {list.state === "scanning" ? "looking for more…" : done < list.runs.length ? `${count(done)} of ${count(list.runs.length)} analysed` : count(list.runs.length)}
    </span>
  );
}

function Contents({ list, chosen, filter, choose, compare, setFilter }: Props) {
  const filterable = list.runs.length >= FILTER_FROM;
  const shown = useMemo(() => groups(list.runs, filterable ? filter : ""), [list.runs, filterable, filter]);
  return (
    <>
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
        <Listbox shown={shown} chosen={chosen} choose={choose} compare={compare} />
      ) : (
        <p class="muted nothing">No recording matches this filter.</p>
      )}
      <Problems problems={list.problems} />
    </>
  );
}

interface ListboxProps {
  readonly shown: ReturnType<typeof groups>;
  readonly chosen: Key | undefined;
  readonly choose: (key: Key) => void;
  readonly compare: (key: Key) => void;
}

/** Only rows near what is seen are in the page: a list of thousands costs no more than one of ten. */
function Listbox({ shown, chosen, choose, compare }: ListboxProps) {
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<Key>();
  const [seen, setSeen] = useState({ from: 0, height: 800 });
  const all = useMemo(() => rowsOf(shown), [shown]);
  // Exactly one row is active: where the focus was, else the chosen one, else the first.
  const active = [focused, chosen].find((key) => key !== undefined && all.keys.includes(key)) ?? all.keys[0];

  const measure = () => {
    const { scrollTop: from = 0, clientHeight: height = 0 } = root.current ?? {};
    if (height > 0) setSeen((before) => (before.from === from && before.height === height ? before : { from, height }));
  };
  useLayoutEffect(() => {
    const resized = new ResizeObserver(measure);
    if (root.current) resized.observe(root.current);
    return () => resized.disconnect();
  }, []);
  const bring = (key: Key | undefined) => {
    if (!root.current || key === undefined) return;
    root.current.scrollTop = scrolledTo(all, key, root.current.scrollTop, root.current.clientHeight);
    measure();
  };
  // A recording that the URL names may be far down.
  useLayoutEffect(() => bring(chosen), [chosen, all.keys.length]);

  const onKeyDown = (event: KeyboardEvent) => {
    const current = active === undefined ? -1 : all.keys.indexOf(active);
    const target = moved(event.key, current, all.keys.length);
    if (target !== undefined) {
      setFocused(all.keys[target]);
      bring(all.keys[target]);
    } else if ((event.key === "Enter" || event.key === " ") && active !== undefined) {
      (event.shiftKey ? compare : choose)(active);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div
      class="listbox"
      role="listbox"
      aria-label="Recordings"
      tabIndex={0}
      {...(active === undefined ? {} : { "aria-activedescendant": domId(all.keys.indexOf(active)) })}
      ref={root}
      onKeyDown={onKeyDown}
      onScroll={measure}
    >
      <div class="rows" role="presentation" style={{ height: `${all.height}px` }}>
        {near(all, seen.from, seen.height).map((row) =>
          row.is === "head" ? (
            <div key={`run ${row.run}`} class="group-name" role="presentation" title={row.run} style={{ top: `${row.top}px` }}>
              <bdi>{shortRun(row.run)}</bdi>
            </div>
          ) : (
            <div
              key={row.key}
              id={domId(row.place)}
              class={row.key === active ? "option active" : "option"}
              role="option"
              aria-selected={row.key === chosen}
              aria-setsize={all.keys.length}
              aria-posinset={row.place + 1}
              aria-label={spoken(row.entry)}
              style={{ top: `${row.top}px` }}
              title={row.entry.source}
              onClick={(event) => (setFocused(row.key), (event.shiftKey ? compare : choose)(row.key))}
            >
              <Entry entry={row.entry} />
            </div>
          ),
        )}
      </div>
    </div>
  );
}

const domId = (place: number): string => `recording-${place}`;

/** The whole row in words. */
function spoken({ run, source, state, verdict, step_ns, health: status, live }: RunEntry): string {
  const what = state !== "done" ? state : verdict ? `${verdict.title} ${shortShare(verdict.share)}, ${severity(verdict.severity).text}` : health(status).text;
  return [runName(run), sourceName(source), what, step_ns === undefined ? "" : `step ${duration(step_ns)}`, live ? "live" : ""].filter(Boolean).join(", ");
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
