// All trainings at a glance: how many are worth fixing, where the most time can be recovered, and what is new.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { RunList } from "../../shared/report";
import { keyOf } from "../../shared/run/keys";
import type { Session } from "../../shared/run/session";
import { sharedFolders, trainingsOf, type TrainingEntry } from "../../shared/run/trainings";
import viewStyle from "../../shared/style/view.css";
import { count, moment } from "../../shared/text/format";
import { severity, type Label } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { sorted } from "../../shared/widgets/sorting";
import { DEFAULT_COLUMNS, gainText, groupColumns, trainingColumns, TrainingLink, type Open } from "./columns";
import { GROUPINGS, type Grouping } from "./facts";
import { Filters } from "./filters";
import { changeOf, lastVisit, storeVisit, type Visit } from "./last_visit";
import sheet from "./overview.css";
import { Ledger } from "./ledger";
import { ALL, groupsOf, matching, NO_VERDICT, mostToGain, mostUrgentFirst, NOT_KNOWN, parseQuery, queryText, severityCounts, type Query } from "./query";

addStyle(viewStyle);
addStyle(sheet);

const TOP = 5;
interface Props {
  readonly list: RunList;
  readonly query: string;
  readonly session: Session;
}

export function Overview({ list, query: text, session }: Props) {
  const { openTraining: open, showOverview: setQuery } = session;
  const query = useMemo(() => parseQuery(text), [text]);
  const visit = useVisit(list);
  const all = trainingsOf(list);
  const shared = sharedFolders(list);
  const latest = useRef(query);
  latest.current = query;
  const change = useCallback((part: Partial<Query>) => setQuery(queryText({ ...latest.current, ...part })), [setQuery]);
  const setOrder = (sort: Query["sort"]) => change({ sort });
  const columns = useMemo(() => trainingColumns(open, visit), [open, visit]);
  const { by, descending } = query.sort;
  const urgentFirst = useMemo(() => mostUrgentFirst(all), [all]); // equal rows stay in this order
  const ordered = useMemo(() => inOrder(urgentFirst, columns, by, descending), [urgentFirst, columns, by, descending]); // a filter keeps the order
  const shown = useMemo(() => matching(ordered, query, { visit, shared, now: Date.now() }), [ordered, query, visit, shared]);
  const others = queryText({ ...query, severity: "", sort: ALL.sort, columns: [] }); // the tiles count what a click on one would show
  const anySeverity = useMemo(() => (others === "all" ? all : matching(all, parseQuery(others), { visit, shared, now: Date.now() })), [all, others, visit, shared]);
  const chosen = query.columns.length > 0 ? query.columns : DEFAULT_COLUMNS;
  const shownColumns = useMemo(() => columns.filter(({ key }) => key === "name" || chosen.includes(key)), [columns, chosen.join(",")]);
  return (
    <article class="overview">
      <header>
        <h1>{shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`} trainings</h1>
        {shared && <p class="muted">in {shared}</p>}
      </header>
      <Severities entries={anySeverity} query={query} change={change} />
      <SinceLastVisit entries={all} visit={visit} query={query} change={change} />
      <MostToGain entries={shown} open={open} />
      <Ledger runs={list.runs} session={session} />
      <Filters entries={all} query={query} columns={columns} chosen={chosen} change={change} />
      {query.by !== "" && query.group === undefined ? (
        <Groups key={query.by} entries={shown} by={query.by} shared={shared} change={change} order={query.sort} setOrder={setOrder} />
      ) : (
        <SortableTable key="" caption="Trainings" class="trainings" rows={shown} columns={shownColumns} control={{ order: query.sort, setOrder, inOrder: true }} />
      )}
    </article>
  );
}

function inOrder(entries: readonly TrainingEntry[], columns: readonly Column<TrainingEntry>[], by: string, descending: boolean): readonly TrainingEntry[] {
  const column = columns.find(({ key }) => key === by);
  return column ? sorted(entries, column.value, descending) : entries;
}

interface GroupsProps {
  readonly entries: readonly TrainingEntry[];
  readonly by: Grouping;
  readonly shared: string;
  readonly change: (part: Partial<Query>) => void;
  readonly order: Query["sort"];
  readonly setOrder: (order: Query["sort"]) => void;
}

/** One row for each group. */
function Groups({ entries, by, shared, change, order, setOrder }: GroupsProps) {
  const groups = useMemo(() => groupsOf(entries, by, shared), [entries, by, shared]);
  const columns = useMemo(() => groupColumns(by, (group) => change({ group })), [by, change]);
  return <SortableTable caption={`Trainings by ${GROUPINGS[by].title}`} rows={groups} columns={columns} control={{ order, setOrder }} />;
}

const visitsAtLoad = new Map<string, Visit | undefined>(); // by logdir, since the page was loaded

/** The last visit before this page was loaded. What is seen now is stored for the next one. */
function useVisit(list: RunList): Visit | undefined {
  const [visit] = useState(() => {
    if (!visitsAtLoad.has(list.logdir)) visitsAtLoad.set(list.logdir, lastVisit(list.logdir));
    return visitsAtLoad.get(list.logdir);
  });
  useEffect(() => {
    if (list.runs.every(({ state }) => state === "done")) storeVisit(list, Date.now());
  }, [list]);
  return visit;
}

interface PartProps {
  readonly entries: readonly TrainingEntry[];
  readonly query: Query;
  readonly change: (part: Partial<Query>) => void;
}

/** The number of trainings of each severity. A click filters the table. */
function Severities({ entries, query, change }: PartProps) {
  const waiting = useMemo(() => entries.filter(({ state }) => state !== "done").length, [entries]);
  const counts = useMemo(() => severityCounts(entries), [entries]);
  return (
    <ul class="severities">
      {counts.map(([word, number]) => {
        const label = labelOf(word);
        const pressed = query.severity === word;
        return (
          <li key={word}>
            <button type="button" class={`tile tone-${label.tone}`} aria-pressed={pressed} onClick={() => change({ severity: pressed ? "" : word })}>
              <b>{count(number)}</b>
              <span>
                <Icon name={label.icon} /> {label.text}
              </span>
            </button>
          </li>
        );
      })}
      {waiting > 0 && (
        <li class="muted">
          <span role="status">{count(waiting)} not analysed yet</span>
        </li>
      )}
    </ul>
  );
}

function labelOf(word: string): Label {
  if (word === NO_VERDICT) return { text: "No verdict", icon: "cross", tone: "plain" };
  return word === NOT_KNOWN ? severity({ severity: "none", regime: "unexplained" }) : severity({ severity: word, regime: "" });
}

function SinceLastVisit({ entries, visit, query, change }: PartProps & { readonly visit: Visit | undefined }) {
  const changes = useMemo(() => (["new", "slower"] as const).map((word) => [word, visit ? entries.filter((entry) => changeOf(entry, visit) === word).length : 0] as const), [entries, visit]);
  if (!visit) return null;
  const some = changes.filter(([, number]) => number > 0);
  return (
    <p class="since">
      Since your last visit ({moment(visit.at)}):{" "}
      {some.length === 0
        ? "nothing new, nothing slower."
        : some.map(([word, number]) => (
            <button key={word} type="button" class="small" aria-pressed={query.since === word} onClick={() => change({ since: query.since === word ? "" : word })}>
              {count(number)} {word}
            </button>
          ))}
    </p>
  );
}

/** The trainings with the most recoverable time, each with what to do. */
function MostToGain({ entries, open }: { entries: readonly TrainingEntry[]; open: Open }) {
  const top = useMemo(() => mostToGain(entries, TOP), [entries]);
  if (top.length === 0) return null;
  return (
    <section>
      <h2>Most to gain</h2>
      <ol class="most-to-gain">
        {top.map((entry) => (
          <li key={keyOf(entry)}>
            <b class="figure">{gainText(entry)}</b>
            <span>
              {entry.action || entry.verdict?.title}
              <small>
                <TrainingLink entry={entry} open={open} />
              </small>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
