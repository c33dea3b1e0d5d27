// All recordings at a glance: how many are worth fixing, where the most time can be recovered, and what is new.
import { useEffect, useMemo, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { RunEntry, RunList } from "../../shared/report";
import { keyOf, type Key } from "../../shared/run/keys";
import { REVIEW_WORDS } from "../../shared/run/review";
import type { Session } from "../../shared/run/session";
import viewStyle from "../../shared/style/view.css";
import { count, factor, moment, shortShare } from "../../shared/text/format";
import { commonFolders, runName } from "../../shared/text/names";
import { severity, type Label } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { SortableTable } from "../../shared/widgets/sortable_table";
import { folderColumns, recordingColumns, RecordingLink } from "./columns";
import { changeOf, lastVisit, storeVisit, type Visit } from "./last_visit";
import sheet from "./overview.css";
import { Ledger } from "./ledger";
import { foldersOf, matching, NO_VERDICT, NOT_KNOWN, parseQuery, queryText, recoverable, severityCounts, type Query } from "./query";

addStyle(viewStyle);
addStyle(sheet);

const TOP = 5;

interface Props {
  readonly list: RunList;
  readonly query: string;
  readonly session: Session;
}

export function Overview({ list, query: text, session }: Props) {
  const { choose, showOverview: setQuery } = session;
  const query = useMemo(() => parseQuery(text), [text]);
  const visit = useVisit(list);
  const prefix = useMemo(() => commonFolders(list.runs.map(({ run }) => runName(run))), [list.runs]);
  const shown = useMemo(() => matching(list.runs, query, visit), [list.runs, query, visit]);
  const change = (part: Partial<Query>) => setQuery(queryText({ ...query, ...part }));
  const setOrder = (sort: Query["sort"]) => change({ sort });
  return (
    <article class="overview">
      <header>
        <h1>{count(list.runs.length)} recordings</h1>
        {prefix && <p class="muted">in {prefix}</p>}
      </header>
      <Severities runs={list.runs} query={query} change={change} />
      <SinceLastVisit runs={list.runs} visit={visit} query={query} change={change} />
      <MostToGain runs={shown} prefix={prefix} choose={choose} />
      <Ledger runs={list.runs} session={session} />
      <Filters runs={list.runs} query={query} change={change} />
      {query.folders ? (
        <SortableTable
          caption="Folders"
          rows={foldersOf(shown)}
          columns={folderColumns((words) => change({ words, folders: false }))}
          control={{ order: query.sort, setOrder }}
        />
      ) : (
        <SortableTable caption="Recordings" rows={shown} columns={recordingColumns(prefix, choose, visit)} control={{ order: query.sort, setOrder }} />
      )}
    </article>
  );
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
  readonly runs: readonly RunEntry[];
  readonly query: Query;
  readonly change: (part: Partial<Query>) => void;
}

/** The number of recordings of each severity. A click filters the table. */
function Severities({ runs, query, change }: PartProps) {
  const waiting = runs.filter(({ state }) => state !== "done").length;
  return (
    <ul class="severities">
      {severityCounts(runs).map(([word, number]) => {
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

function SinceLastVisit({ runs, visit, query, change }: PartProps & { readonly visit: Visit | undefined }) {
  if (!visit) return null;
  const changes = (["new", "slower"] as const).map((word) => [word, runs.filter((entry) => changeOf(entry, visit) === word).length] as const);
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

/** The recordings with the most recoverable time, each with what to do. */
function MostToGain({ runs, prefix, choose }: { runs: readonly RunEntry[]; prefix: string; choose: (key: Key) => void }) {
  const top = runs.filter((entry) => recoverable(entry) !== undefined).sort((a, b) => recoverable(b)! - recoverable(a)!).slice(0, TOP);
  if (top.length === 0) return null;
  return (
    <section>
      <h2>Most to gain</h2>
      <ol class="most-to-gain">
        {top.map((entry) => (
          <li key={keyOf(entry)}>
            <b class="figure">{factor(entry.gain!.expected)}</b>
            <span>
              {entry.action}
              <small>
                <RecordingLink entry={entry} prefix={prefix} choose={choose} /> · {shortShare(recoverable(entry))} of the time
              </small>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Filters({ runs, query, change }: PartProps) {
  const regimes = new Map(runs.flatMap(({ verdict }) => (verdict ? [[verdict.regime, verdict.title] as const] : [])));
  return (
    <div class="filters" role="search" aria-label="Filter the recordings">
      <input
        type="search"
        placeholder="Filter: name, verdict, action, device, owner"
        aria-label="Filter by words"
        value={query.words}
        onInput={(event) => change({ words: event.currentTarget.value })}
      />
      <label>
        Verdict{" "}
        <select value={query.regime} onChange={(event) => change({ regime: event.currentTarget.value })}>
          <option value="">any</option>
          {[...regimes].sort(([, a], [, b]) => a.localeCompare(b, "en")).map(([regime, title]) => (
            <option key={regime} value={regime}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        Review{" "}
        <select value={query.review} onChange={(event) => change({ review: REVIEW_WORDS.find((word) => word === event.currentTarget.value) ?? "" })}>
          <option value="">any</option>
          {REVIEW_WORDS.map((word) => (
            <option key={word} value={word}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label>
        <input type="checkbox" checked={query.folders} onChange={(event) => change({ folders: event.currentTarget.checked })} /> Group by folder
      </label>
    </div>
  );
}
