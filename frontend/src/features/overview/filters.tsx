// What the overview's table shows: filters, groups and columns.
import { useMemo } from "preact/hooks";
import { REVIEW_WORDS } from "../../shared/run/review";
import type { TrainingEntry } from "../../shared/run/trainings";
import type { Column } from "../../shared/widgets/sortable_table";
import { GROUPINGS, isGrouping } from "./facts";
import { WITHIN, type Query } from "./query";

interface Props {
  readonly entries: readonly TrainingEntry[];
  readonly query: Query;
  readonly columns: readonly Column<TrainingEntry>[];
  readonly chosen: readonly string[]; // keys of columns
  readonly change: (part: Partial<Query>) => void;
}

type Option = readonly [value: string, title: string];

const TIMES: readonly Option[] = [["day", "last day"], ["week", "last week"], ["month", "last 30 days"]];
const GROUPS: readonly Option[] = Object.entries(GROUPINGS).map(([key, { title }]) => [key, title]);

export function Filters({ entries, query, columns, chosen, change }: Props) {
  const byTitle = useMemo(() => {
    const regimes = new Map(entries.flatMap(({ verdict }) => (verdict ? [[verdict.regime, verdict.title] as const] : [])));
    return [...regimes].sort(([, a], [, b]) => a.localeCompare(b, "en"));
  }, [entries]);
  return (
    <div class="filters" role="search" aria-label="Filter the trainings">
      <input
        type="search"
        placeholder="Filter: name, verdict, action, device"
        aria-label="Filter by words"
        value={query.words}
        onInput={(event) => change({ words: event.currentTarget.value })}
      />
      <Choice title="Verdict" none="any" value={query.regime} options={byTitle} set={(regime) => change({ regime })} />
      <Choice title="Recorded" none="at any time" value={query.within} options={TIMES} set={(text) => change({ within: text in WITHIN ? (text as Query["within"]) : "" })} />
      <Choice title="Findings" none="in any state" value={query.review} options={REVIEW_WORDS.map((word) => [word, word])} set={(text) => change({ review: REVIEW_WORDS.find((word) => word === text) ?? "" })} />
      <Choice title="Group by" none="nothing" value={query.by} options={GROUPS} set={(text) => change({ by: isGrouping(text) ? text : "", group: undefined })} />
      {query.by !== "" && query.group !== undefined && (
        <button type="button" class="small" onClick={() => change({ group: undefined })}>
          All groups; shown: {GROUPINGS[query.by].title} {query.group || "not known"}
        </button>
      )}
      <Columns columns={columns} chosen={chosen} change={change} />
    </div>
  );
}

function Choice({ title, none, value, options, set }: { title: string; none: string; value: string; options: readonly Option[]; set: (value: string) => void }) {
  return (
    <label>
      {title}{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        <option value="">{none}</option>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The columns of the table, as a list of checkboxes that unfolds. */
function Columns({ columns, chosen, change }: Pick<Props, "columns" | "chosen" | "change">) {
  const set = (key: string, on: boolean) => change({ columns: columns.map((column) => column.key).filter((each) => (each === key ? on : chosen.includes(each))) });
  return (
    <details class="columns-chosen">
      <summary>Columns</summary>
      <ul>
        {columns.slice(1).map(({ key, title, hint }) => (
          <li key={key}>
            <label title={hint}>
              <input type="checkbox" checked={chosen.includes(key)} onChange={(event) => set(key, event.currentTarget.checked)} /> {title}
            </label>
          </li>
        ))}
      </ul>
      <button type="button" class="small" onClick={() => change({ columns: [] })}>
        Default columns
      </button>
    </details>
  );
}
