// What the overview shows, and its spelling in the address: "words=slow loader&severity=critical&sort=-step". Pure.
import type { RunEntry } from "../../shared/report";
import { withWords } from "../../shared/run/groups";
import { isInState, REVIEW_WORDS, type ReviewWord } from "../../shared/run/review";
import type { TrainingEntry } from "../../shared/run/trainings";
import { isNotKnown, severityWord } from "../../shared/text/vocabulary";
import { sorted, type Order } from "../../shared/widgets/sorting";
import { GROUPINGS, isGrouping, type Grouping } from "./facts";
import { changeOf, type Visit } from "./last_visit";

export interface Query {
  readonly words: string;
  readonly severity: string; // "" is any; NO_VERDICT is none
  readonly regime: string; // "" is any
  readonly since: "" | "new" | "slower"; // compared with the last visit
  readonly review: "" | ReviewWord; // the state of a finding
  readonly within: "" | Within; // recorded within this time
  readonly sort: Order;
  readonly by: "" | Grouping; // one row for each group instead of one for each training
  readonly group: string | undefined; // only this group of `by`
  readonly columns: readonly string[]; // the chosen ones; none are the default
}

export const NO_VERDICT = "no-verdict";
export const NOT_KNOWN = "not-known"; // a verdict that nothing recorded explains
export const ALL: Query = { words: "", severity: "", regime: "", since: "", review: "", within: "", sort: { by: "severity", descending: true }, by: "", group: undefined, columns: [] };

const DAY_MS = 86_400_000;
/** Times before now, in ms. */
export const WITHIN = { day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS } as const;
export type Within = keyof typeof WITHIN;
const isWithin = (text: string): text is Within => Object.hasOwn(WITHIN, text);

/** The text of a query. The default is "all", so that the address contains the parameter. */
export function queryText({ words, severity, regime, since, review, within, sort, by, group, columns }: Query): string {
  const order = sort.by === ALL.sort.by && sort.descending === ALL.sort.descending ? "" : `${sort.descending ? "-" : ""}${sort.by}`;
  const parts = Object.entries({ words, severity, regime, since, review, within, sort: order, by, columns: columns.join(",") }).filter(([, text]) => text !== "");
  if (by !== "" && group !== undefined) parts.push(["group", group]); // the empty group is that without the fact
  return new URLSearchParams(parts).toString() || "all";
}

export function parseQuery(text: string): Query {
  const values = new URLSearchParams(text);
  const value = (name: string) => values.get(name) ?? "";
  const [since, sort, within, by] = [value("since"), value("sort"), value("within"), value("by")];
  return {
    words: value("words"),
    severity: value("severity"),
    regime: value("regime"),
    since: since === "new" || since === "slower" ? since : "",
    review: REVIEW_WORDS.find((word) => word === value("review")) ?? "",
    within: isWithin(within) ? within : "",
    sort: sort ? { by: sort.replace(/^-/, ""), descending: sort.startsWith("-") } : ALL.sort,
    by: isGrouping(by) ? by : "",
    group: isGrouping(by) ? (values.get("group") ?? undefined) : undefined,
    columns: value("columns").split(",").filter(Boolean),
  };
}

/** The severity of a training, or why it has none. */
export function severityOf({ verdict }: RunEntry): string {
  if (!verdict) return NO_VERDICT;
  return isNotKnown(verdict) ? NOT_KNOWN : severityWord(verdict);
}

/** What a query is compared with: the last visit, the folders that all runs share, and the time now (ms since 1970). */
export interface Surroundings {
  readonly visit: Visit | undefined;
  readonly shared: string;
  readonly now: number;
}

/** The trainings that the query asks for. */
export function matching(entries: readonly TrainingEntry[], query: Query, { visit, shared, now }: Surroundings): readonly TrainingEntry[] {
  const { severity, regime, review, since, within, by, group } = query;
  return withWords(entries, query.words).filter(
    (entry) =>
      (severity === "" || severity === severityOf(entry)) &&
      (regime === "" || regime === entry.verdict?.regime) &&
      (review === "" || isInState(entry, review)) &&
      (since === "" || since === changeOf(entry, visit)) &&
      (within === "" || entry.at >= now - WITHIN[within]) &&
      (by === "" || group === undefined || group === GROUPINGS[by].of(entry, shared)),
  );
}

const RANKS: Readonly<Record<string, number>> = { critical: 3, warning: 2, info: 1, none: 0 };

/** A higher rank is more severe; undefined without a verdict. */
export const severityRank = (verdict: Parameters<typeof severityWord>[0] | undefined): number | undefined => verdict && RANKS[severityWord(verdict)];

/** The trainings with the most severe verdict first, and of those the ones with the largest gain. */
export function mostUrgentFirst<T extends RunEntry>(entries: readonly T[]): readonly T[] {
  const byGain = sorted(entries, ({ gain }) => gain?.expected, true);
  return sorted(byGain, ({ verdict }) => severityRank(verdict), true);
}

const SEVERITIES = ["critical", "warning", "info", "none", NOT_KNOWN, NO_VERDICT];

/** Severities with the number of their trainings, most severe first; those without a training are left out. */
export function severityCounts(entries: readonly RunEntry[]): readonly (readonly [string, number])[] {
  const counts = new Map(SEVERITIES.map((severity) => [severity, 0]));
  for (const entry of entries) if (entry.state === "done") counts.set(severityOf(entry), (counts.get(severityOf(entry)) ?? 0) + 1);
  return [...counts].filter(([, number]) => number > 0);
}

/** The share of the time that the plan would save; undefined if nothing is predicted. */
export function recoverable({ gain }: RunEntry): number | undefined {
  return gain && gain.expected > 1 ? 1 - 1 / gain.expected : undefined;
}

/** True if the gain is an upper bound, or its confidence is low. */
const isUnsure = (entry: RunEntry): boolean => isBound(entry) || entry.verdict?.confidence === "low";

/** True if the gain is an upper bound, not a prediction. */
export const isBound = ({ gain }: RunEntry): boolean => gain?.basis === "bound";

/** The trainings with the largest recoverable shares, the largest first, unsure ones last; without those that have none. */
export function mostToGain<T extends RunEntry>(entries: readonly T[], most: number): readonly T[] {
  const top: { readonly entry: T; readonly share: number }[] = []; // sorting all of thousands would take longer
  for (const entry of entries) {
    const saved = recoverable(entry);
    const share = saved !== undefined && isUnsure(entry) ? saved - 1 : saved;
    if (share === undefined || (top.length === most && share <= top[most - 1]!.share)) continue;
    const at = top.findIndex((each) => each.share < share);
    top.splice(at < 0 ? top.length : at, 0, { entry, share });
    if (top.length > most) top.pop();
  }
  return top.map(({ entry }) => entry);
}

export interface Group {
  readonly name: string; // "" if the fact is not known
  readonly entries: readonly TrainingEntry[];
}

/** The trainings by a fact, in the order of their first ones. */
export function groupsOf(entries: readonly TrainingEntry[], by: Grouping, shared: string): readonly Group[] {
  const byName = new Map<string, TrainingEntry[]>();
  for (const entry of entries) {
    const name = GROUPINGS[by].of(entry, shared);
    const own = byName.get(name);
    if (own) own.push(entry);
    else byName.set(name, [entry]);
  }
  return [...byName].map(([name, own]) => ({ name, entries: own }));
}
