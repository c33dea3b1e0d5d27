// The list of recordings, grouped by run directory: a listbox with arrow keys, Enter to choose, Shift and Enter to compare.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunEntry, RunList as List } from "../../shared/report";
import { groups } from "../../shared/run/groups";
import { keyOf, type Key } from "../../shared/run/keys";
import { count, duration, shortShare } from "../../shared/text/format";
import { commonFolders, leadOf, runName, shortRun, sourceName } from "../../shared/text/names";
import { health, severity } from "../../shared/text/vocabulary";
import { nextInList } from "../../shared/widgets/list_navigation";
import { Collapsible } from "./collapsible";
import { Entry } from "./run_entry";
import { rowsOf, scrollTarget, visibleRows } from "./visible_rows";

const MIN_ROWS_FOR_FILTER = 9;

interface Props {
  readonly list: List;
  readonly chosen: Key | undefined;
  readonly filter: string;
  readonly overview: (() => void) | undefined; // shows all recordings at a glance; undefined for a single one
  readonly choose: (key: Key) => void;
  readonly compare: (key: Key) => void; // compares the chosen recording with this one
  readonly setFilter: (text: string) => void;
}

export function RunList(props: Props) {
  const { list, chosen, overview } = props;
  const entry = list.runs.find((each) => keyOf(each) === chosen);
  return (
    <Collapsible current={entry} status={<Status list={list} />}>
      {(close) => <Contents {...props} choose={(key) => (props.choose(key), close())} compare={(key) => (props.compare(key), close())} overview={overview && (() => (overview(), close()))} />}
    </Collapsible>
  );
}

/** The number of recordings, or the progress of their analysis. */
function Status({ list }: { list: List }) {
  const done = useMemo(() => list.runs.filter((entry) => entry.state === "done").length, [list.runs]);
  return (
    <span class="muted count" role="status">
      {list.state === "scanning" ? "looking for more…" : done < list.runs.length ? `${count(done)} of ${count(list.runs.length)} analysed` : count(list.runs.length)}
    </span>
  );
}

function Contents({ list, chosen, filter, overview, choose, compare, setFilter }: Props) {
  const filterable = list.runs.length >= MIN_ROWS_FOR_FILTER;
  const shown = useMemo(() => groups(list.runs, filterable ? filter : ""), [list.runs, filterable, filter]);
  return (
    <>
      {overview && (
        <button type="button" class="overview-button" aria-current={chosen === undefined} onClick={overview}>
          Overview of all recordings
        </button>
      )}
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

/** Only rows near the visible ones are in the page, so that a list of thousands is as fast as one of ten. */
function Listbox({ shown, chosen, choose, compare }: ListboxProps) {
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<Key>();
  const [viewport, setViewport] = useState({ from: 0, height: 800 });
  const all = useMemo(() => rowsOf(shown), [shown]);
  const prefix = useMemo(() => commonFolders(shown.map(({ run }) => runName(run))), [shown]);
  // Exactly one row is active: the last focused one, else the chosen one, else the first.
  const active = [focused, chosen].find((key) => key !== undefined && all.keys.includes(key)) ?? all.keys[0];

  const measure = () => {
    const { scrollTop: from = 0, clientHeight: height = 0 } = root.current ?? {};
    if (height > 0) setViewport((before) => (before.from === from && before.height === height ? before : { from, height }));
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    if (root.current) observer.observe(root.current);
    return () => observer.disconnect();
  }, []);
  const scrollTo = (key: Key | undefined) => {
    if (!root.current || key === undefined) return;
    root.current.scrollTop = scrollTarget(all, key, root.current.scrollTop, root.current.clientHeight);
    measure();
  };
  // The recording in the URL may be far down in the list.
  useLayoutEffect(() => scrollTo(chosen), [chosen, all.keys.length]);

  const onKeyDown = (event: KeyboardEvent) => {
    const current = active === undefined ? -1 : all.keys.indexOf(active);
    const target = nextInList(event.key, current, all.keys.length);
    if (target !== undefined) {
      setFocused(all.keys[target]);
      scrollTo(all.keys[target]);
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
        {visibleRows(all, viewport.from, viewport.height).map((row) =>
          row.is === "header" ? (
            <div key={`run ${row.run}`} class="group-name" role="presentation" title={row.run} style={{ top: `${row.top}px` }}>
              <bdi>{shortRun(row.run, prefix)}</bdi>
            </div>
          ) : (
            <div
              key={row.key}
              id={domId(row.index)}
              class={row.key === active ? "option active" : "option"}
              role="option"
              aria-selected={row.key === chosen}
              aria-setsize={all.keys.length}
              aria-posinset={row.index + 1}
              aria-label={description(row.entry)}
              style={{ top: `${row.top}px` }}
              title={tooltip(row.entry)}
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

const domId = (index: number): string => `recording-${index}`;

/** The name of the file, and what to change first. */
const tooltip = ({ source, verdict }: RunEntry): string => [source, verdict && leadOf(verdict)].filter(Boolean).join("\n");

/** The row as text, for screen readers. */
function description({ run, source, state, verdict, step_ns, health: status, live }: RunEntry): string {
  const outcome = state !== "done" ? state : verdict ? [`${verdict.title} ${shortShare(verdict.share)}`, severity(verdict).text, verdict.action].filter(Boolean).join(", ") : health(status).text;
  return [runName(run), sourceName(source), outcome, step_ns === undefined ? "" : `step ${duration(step_ns)}`, live ? "live" : ""].filter(Boolean).join(", ");
}

export function Problems({ problems }: { problems: readonly string[] }) {
  if (problems.length === 0) return null;
  return (
    <details class="problems">
      <summary>
        {problems.length === 1 ? "One problem" : `${problems.length} problems`} while scanning the logdir
      </summary>
      <ul>
        {problems.map((problem, index) => (
          <li key={index}>{problem}</li>
        ))}
      </ul>
    </details>
  );
}
