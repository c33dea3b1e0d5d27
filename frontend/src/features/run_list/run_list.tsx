// The list of trainings, grouped by folder: a listbox with arrow keys, Enter to choose, Shift and Enter to compare.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunList as List, Verdict } from "../../shared/report";
import { prepareTexts } from "../../shared/run/groups";
import { keyOf, type Key } from "../../shared/run/keys";
import { evidenceOf, notJudged, sectionsOf, trainingOf, trainingsOf, type Section, type TrainingEntry } from "../../shared/run/trainings";
import { count, duration, shortShare } from "../../shared/text/format";
import { leadingAlert, leadOf, runName, sourceName } from "../../shared/text/names";
import { health, severity } from "../../shared/text/vocabulary";
import { nextInList } from "../../shared/widgets/list_navigation";
import { MiddleCut } from "../../shared/widgets/middle_cut";
import { Collapsible } from "./collapsible";
import { Entry } from "./run_entry";
import { rowsOf, scrollTarget, visibleRows } from "./visible_rows";

const MIN_ROWS_FOR_FILTER = 9;
const RECYCLED = 256; // rows that can be in the page at once: those of others are used again while scrolling
const MAX_FILES = 6; // in a tooltip; a job may have thousands

interface Props {
  readonly list: List;
  readonly chosen: Key | undefined; // a recording; its training is the selected entry
  readonly filter: string;
  readonly overview: (() => void) | undefined; // shows all trainings at a glance; undefined for a single one
  readonly choose: (entry: TrainingEntry) => void;
  readonly compare: (entry: TrainingEntry) => void; // compares the chosen recording with this one
  readonly setFilter: (text: string) => void;
}

export function RunList(props: Props) {
  const { list, chosen, overview } = props;
  const entry = trainingOf(list, chosen);
  return (
    <Collapsible current={entry?.members.find((member) => keyOf(member) === chosen)} status={<Status list={list} />}>
      {(close) => <Contents {...props} chosen={entry && keyOf(entry)} showsOverview={chosen === undefined} choose={(each) => (props.choose(each), close())} compare={(each) => (props.compare(each), close())} overview={overview && (() => (overview(), close()))} />}
    </Collapsible>
  );
}

/** The number of trainings, or the progress of their analysis. */
function Status({ list }: { list: List }) {
  const all = trainingsOf(list);
  const done = useMemo(() => all.filter((entry) => entry.state === "done").length, [all]);
  return (
    <span class="muted count" role="status">
      {list.state === "scanning" ? "looking for more…" : done < all.length ? `${count(done)} of ${count(all.length)} analysed` : count(all.length)}
    </span>
  );
}

function Contents({ list, chosen, showsOverview, filter, overview, choose, compare, setFilter }: Props & { readonly showsOverview: boolean }) {
  const all = trainingsOf(list);
  useEffect(() => prepareTexts(all), [all]);
  const filterable = all.length >= MIN_ROWS_FOR_FILTER;
  const shown = useMemo(() => sectionsOf(all, filterable ? filter : ""), [all, filterable, filter]);
  return (
    <>
      {overview && (
        <button type="button" class="overview-button" aria-current={showsOverview} onClick={overview}>
          Overview of all trainings
        </button>
      )}
      {filterable && (
        <input
          type="search"
          placeholder="Filter by name or verdict"
          aria-label="Filter trainings by name or verdict"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {shown.length > 0 ? (
        <Listbox shown={shown} chosen={chosen} choose={choose} compare={compare} />
      ) : (
        <p class="muted nothing">No training matches this filter.</p>
      )}
      <Problems problems={list.problems} />
    </>
  );
}

interface ListboxProps {
  readonly shown: readonly Section[];
  readonly chosen: Key | undefined;
  readonly choose: (entry: TrainingEntry) => void;
  readonly compare: (entry: TrainingEntry) => void;
}

/** Only rows near the visible ones are in the page, so that a list of thousands is as fast as one of ten. */
function Listbox({ shown, chosen, choose, compare }: ListboxProps) {
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<Key>();
  const [viewport, setViewport] = useState({ from: 0, height: 800 });
  const all = useMemo(() => rowsOf(shown), [shown]);
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
      const row = all.rows.find((each) => each.is === "entry" && each.key === active);
      if (row?.is === "entry") (event.shiftKey ? compare : choose)(row.entry);
    } else {
      return;
    }
    event.preventDefault();
  };

  const drawn = visibleRows(all, viewport.from, viewport.height);
  const isDrawn = drawn.some((row) => row.is === "entry" && row.key === active); // else there is no element to refer to
  return (
    <div
      class="listbox"
      role="listbox"
      aria-label="Trainings"
      tabIndex={0}
      {...(active !== undefined && isDrawn ? { "aria-activedescendant": domId(all.keys.indexOf(active)) } : {})}
      ref={root}
      onKeyDown={onKeyDown}
      onScroll={measure}
    >
      <div class="rows" role="presentation" style={{ height: `${all.height}px` }}>
        {drawn.map((row) =>
          row.is === "header" ? (
            <div key={`folder ${row.folder}`} class="group-name" role="presentation" title={row.folder} style={{ top: `${row.top}px` }}>
              <MiddleCut text={row.folder} />
            </div>
          ) : (
            <div
              key={`option ${row.index % RECYCLED}`}
              id={domId(row.index)}
              class={row.key === active ? "option active" : "option"}
              role="option"
              aria-selected={row.key === chosen}
              aria-setsize={all.keys.length}
              aria-posinset={row.index + 1}
              aria-label={description(row.entry)}
              style={{ top: `${row.top}px` }}
              title={tooltip(row.entry)}
              onClick={(event) => (setFocused(row.key), (event.shiftKey ? compare : choose)(row.entry))}
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

/** The names of the files, and what to change first. */
const tooltip = (entry: TrainingEntry): string => [...entry.members.slice(0, MAX_FILES).map(({ source }) => source), entry.verdict ? leadOf(entry.verdict) : notJudged(entry)].filter(Boolean).join("\n");

/** The row as text, for screen readers. */
function description(entry: TrainingEntry): string {
  const { named, state, verdict, step_ns, health: status, live } = entry;
  const outcome = state !== "done" ? state : verdict ? outcomeOf(verdict).filter(Boolean).join(", ") : notJudged(entry) || health(status).text;
  return [runName(named.run), sourceName(named.source), evidenceOf(entry), outcome, step_ns === undefined ? "" : `step ${duration(step_ns)}`, live ? "live" : ""].filter(Boolean).join(", ");
}

function outcomeOf(verdict: Verdict): readonly string[] {
  const alert = leadingAlert(verdict);
  return [alert ? alert.title : `${verdict.title} ${shortShare(verdict.share)}`, severity(verdict).text, alert ? alert.action : verdict.action];
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
