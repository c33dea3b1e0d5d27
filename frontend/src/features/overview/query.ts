// What the overview shows, and its spelling in the address: "words=slow loader&severity=critical&sort=-gain". Pure.
import type { RunEntry } from "../../shared/report";
import { withWords } from "../../shared/run/groups";
import { isInState, REVIEW_WORDS, type ReviewWord } from "../../shared/run/review";
import type { Order } from "../../shared/widgets/sorting";
import { changeOf, type Visit } from "./last_visit";

export interface Query {
  readonly words: string;
  readonly severity: string; // "" is any; NO_VERDICT is none
  readonly regime: string; // "" is any
  readonly since: "" | "new" | "slower"; // compared with the last visit
  readonly review: "" | ReviewWord; // the state of a finding
  readonly sort: Order;
  readonly folders: boolean; // one row for each folder instead of one for each recording
}

export const NO_VERDICT = "no-verdict";
export const NOT_KNOWN = "not-known"; // a verdict that nothing recorded explains
export const ALL: Query = { words: "", severity: "", regime: "", since: "", review: "", sort: { by: "gain", descending: true }, folders: false };

/** The text of a query. The default is "all", so that the address contains the parameter. */
export function queryText({ words, severity, regime, since, review, sort, folders }: Query): string {
  const { by, descending } = sort;
  const order = by === ALL.sort.by && descending === ALL.sort.descending ? "" : `${descending ? "-" : ""}${by}`;
  const parts = Object.entries({ words, severity, regime, since, review, sort: order, by: folders ? "folder" : "" }).filter(([, text]) => text !== "");
  return new URLSearchParams(parts).toString() || "all";
}

export function parseQuery(text: string): Query {
  const values = new URLSearchParams(text);
  const value = (name: string) => values.get(name) ?? "";
  const since = value("since");
  const sort = value("sort");
  return {
    words: value("words"),
    severity: value("severity"),
    regime: value("regime"),
    since: since === "new" || since === "slower" ? since : "",
    review: REVIEW_WORDS.find((word) => word === value("review")) ?? "",
    sort: sort ? { by: sort.replace(/^-/, ""), descending: sort.startsWith("-") } : ALL.sort,
    folders: value("by") === "folder",
  };
}

/** The severity of a recording, or why it has none. */
export function severityOf({ verdict }: RunEntry): string {
  if (!verdict) return NO_VERDICT;
  return verdict.severity === "none" && verdict.regime === "unexplained" ? NOT_KNOWN : verdict.severity;
}

/** The recordings that the query asks for. */
export function matching(runs: readonly RunEntry[], query: Query, visit: Visit | undefined): readonly RunEntry[] {
  return withWords(runs, query.words).filter(
    (entry) =>
      (query.severity === "" || query.severity === severityOf(entry)) &&
      (query.regime === "" || query.regime === entry.verdict?.regime) &&
      (query.review === "" || isInState(entry, query.review)) &&
      (query.since === "" || query.since === changeOf(entry, visit)),
  );
}

/** Severities with the number of their recordings, most severe first; those without a recording are left out. */
export function severityCounts(runs: readonly RunEntry[]): readonly (readonly [string, number])[] {
  const order = ["critical", "warning", "info", "none", NOT_KNOWN, NO_VERDICT];
  const counts = order.map((severity) => [severity, runs.filter((entry) => entry.state === "done" && severityOf(entry) === severity).length] as const);
  return counts.filter(([, count]) => count > 0);
}

/** The share of the time that the plan would save; undefined if nothing is predicted. */
export function recoverable({ gain }: RunEntry): number | undefined {
  return gain && gain.expected > 1 ? 1 - 1 / gain.expected : undefined;
}

export interface Folder {
  readonly name: string;
  readonly entries: readonly RunEntry[];
}

/** The recordings by the folder of their run; a recording of the logdir itself is in the folder ".". */
export function foldersOf(runs: readonly RunEntry[]): readonly Folder[] {
  const byFolder = new Map<string, RunEntry[]>();
  for (const entry of runs) {
    const name = entry.run.includes("/") ? entry.run.slice(0, entry.run.indexOf("/")) : entry.run || ".";
    const entries = byFolder.get(name);
    if (entries) entries.push(entry);
    else byFolder.set(name, [entry]);
  }
  return [...byFolder].map(([name, entries]) => ({ name, entries }));
}
