// What the tab knows and has been asked to show, and how each event changes it. No clock, no network, no page.
import { fileStem, runName, sourceName } from "../shared/text/names";
import type { Report, ReportAnswer, RunEntry, RunList } from "../shared/report";

/** The report's contract that this tab was written for; a newer one is drawn as far as it is understood. */
export const KNOWN_SCHEMA = 2;

/** A recording's name that outlives the server: ids are handed out anew by each scan. */
export type Key = string;

/** What of a recording is shown. */
export const VIEWS = ["diagnosis", "timeline", "tables", "roofline", "ranks", "live", "compare", "whatif"] as const;
export type View = (typeof VIEWS)[number];
export const viewNamed = (name: string | undefined): View => VIEWS.find((view) => view === name) ?? "diagnosis";

/** A stretch of time on the recording's own clock (telemetry: since 1970), in ns. Without a label it is just what was shown last. */
export interface Focus {
  readonly begin: number;
  readonly end: number;
  readonly label: string;
  readonly shown?: { readonly begin: number; readonly end: number }; // what of the timeline is seen around it
}

export interface Failure {
  readonly since: number; // epoch milliseconds of the first of them
  readonly count: number; // in a row
  readonly message: string;
}

export interface State {
  readonly list?: RunList;
  readonly chosen?: Key; // may name a recording that is not there (yet, or any more)
  readonly answer?: ReportAnswer; // the last one about the chosen recording
  readonly report?: Report; // the last one that the chosen recording had
  readonly failure?: Failure;
  readonly filter: string;
  readonly view: View;
  readonly focus?: Focus;
  readonly against?: Key; // what the chosen recording is compared with; may name one that is not there
  readonly row?: readonly Key[]; // a series, with the chosen recording among it as long as it is shown
  readonly supposed?: string; // of the chosen recording, as whatif/asked.ts spells it
}

export const START: State = { filter: "", view: "diagnosis" };

export type Action =
  | { readonly type: "runs"; readonly list: RunList }
  | { readonly type: "report"; readonly key: Key; readonly answer: ReportAnswer }
  | { readonly type: "choose"; readonly key: Key; readonly remembered: ReportAnswer | undefined }
  | { readonly type: "filter"; readonly text: string }
  | { readonly type: "view"; readonly view: View }
  | { readonly type: "look"; readonly focus: Focus }
  | { readonly type: "against"; readonly key: Key | undefined }
  | { readonly type: "row"; readonly keys: readonly Key[] | undefined }
  | { readonly type: "supposed"; readonly text: string | undefined }
  | { readonly type: "polled" }
  | { readonly type: "failed"; readonly at: number; readonly message: string };

export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case "runs":
      return action.list === state.list ? state : withList(state, action.list);
    case "report":
      return action.key === state.chosen ? withAnswer(state, action.answer) : state; // else it was overtaken
    case "choose":
      return action.key === state.chosen ? state : choose(state, action.key, action.remembered);
    case "filter":
      return { ...state, filter: action.text };
    case "view":
      return action.view === state.view ? state : { ...state, view: action.view };
    case "look":
      return { ...state, view: viewInTime(state), focus: action.focus };
    case "against":
      return action.key === state.against ? state : compared(state, action.key);
    case "row":
      return same(action.keys, state.row) ? state : linedUp(state, action.keys);
    case "supposed":
      return action.text === state.supposed ? state : supposed(state, action.text);
    case "polled": {
      if (!state.failure) return state;
      const { failure: _, ...rest } = state;
      return rest;
    }
    case "failed": {
      const { since, count } = state.failure ?? { since: action.at, count: 0 };
      return { ...state, failure: { since, count: count + 1, message: action.message } };
    }
  }
}

/** The first recording is chosen when nothing else was, and stays chosen when another one moves to the top. */
function withList(state: State, list: RunList): State {
  const chosen = state.chosen ?? list.runs.map(keyOf)[0];
  return chosen === undefined ? { ...state, list } : { ...state, list, chosen };
}

/** A recording that is analysed again keeps its last report until the next one is there. */
function withAnswer(state: State, answer: ReportAnswer): State {
  if (answer === state.answer) return state;
  const report = answer.report ?? state.report;
  return report ? { ...state, answer, report } : { ...state, answer };
}

function choose(state: State, chosen: Key, remembered: ReportAnswer | undefined): State {
  const { answer: _answer, report: _report, focus: _focus, ...rest } = state;
  const bare = { ...rest, chosen };
  return remembered ? withAnswer(bare, remembered) : bare;
}

function compared(state: State, key: Key | undefined): State {
  const { against: _, ...rest } = state;
  return key === undefined ? rest : { ...rest, against: key };
}

function linedUp(state: State, keys: readonly Key[] | undefined): State {
  const { row: _, ...rest } = state;
  return keys === undefined ? rest : { ...rest, row: keys };
}

function same(one: readonly Key[] | undefined, other: readonly Key[] | undefined): boolean {
  return one === other || (one?.length === other?.length && (one ?? []).every((key, place) => key === other?.[place]));
}

function supposed(state: State, text: string | undefined): State {
  const { supposed: _, ...rest } = state;
  return text === undefined ? rest : { ...rest, supposed: text };
}

export function keyOf({ run, source }: RunEntry): Key {
  return `${run}/${source}`;
}

/** A stretch as text and back: "begin-end" in whole ns. Undefined where the text is none. */
export function spanIn(text: string | undefined): { readonly begin: number; readonly end: number } | undefined {
  const [, begin, end] = /^(\d{1,19})-(\d{1,19})$/.exec(text ?? "") ?? [];
  return begin !== undefined && end !== undefined && Number(end) > Number(begin) ? { begin: Number(begin), end: Number(end) } : undefined;
}

export function spanText({ begin, end }: { readonly begin: number; readonly end: number }): string {
  return `${Math.max(0, Math.round(begin))}-${Math.max(0, Math.round(end))}`;
}

/** What the address says of the timeline. */
export function focusIn(at: string | undefined, mark: string | undefined): Focus | undefined {
  const [shown, marked] = [spanIn(at), spanIn(mark)];
  if (marked) return { ...marked, label: "Evidence", ...(shown ? { shown } : {}) };
  return shown && { ...shown, label: "", shown };
}

export function entryOf(state: State, key: Key | undefined): RunEntry | undefined {
  return state.list?.runs.find((entry) => keyOf(entry) === key);
}

/** Where a stretch of time of the chosen recording is seen: telemetry has no timeline, but readings. */
function viewInTime(state: State): View {
  return chosenEntry(state)?.evidence_source === "telemetry" ? "live" : "timeline";
}

/** The chosen recording, once the list has it. */
export function chosenEntry(state: State): RunEntry | undefined {
  return entryOf(state, state.chosen);
}

/** A recording was asked for, by the URL or a click, and the finished scan does not have it. */
export function hasVanished(state: State): boolean {
  return state.chosen !== undefined && state.list?.state === "ready" && !chosenEntry(state);
}

export interface Group {
  readonly run: string;
  readonly entries: readonly RunEntry[];
}

/** The recordings that contain every word of the filter, by run directory, in the server's order. */
export function groups(runs: readonly RunEntry[], filter: string): readonly Group[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const byRun = new Map<string, RunEntry[]>();
  for (const entry of runs) {
    const text = `${runName(entry.run)} ${fileStem(entry.source)} ${sourceName(entry.source)} ${entry.verdict?.title ?? entry.health}`.toLowerCase();
    if (!wanted.every((word) => text.includes(word))) continue;
    const entries = byRun.get(entry.run);
    if (entries) entries.push(entry);
    else byRun.set(entry.run, [entry]);
  }
  return [...byRun].map(([run, entries]) => ({ run, entries }));
}

const BUSY_MS = 1_000;
const IDLE_MS = 30_000;

/** How long to wait before asking again: shorter while the server works, longer with each failure. */
export function pollDelay(state: State): number {
  if (state.failure) return Math.min(BUSY_MS * 2 ** state.failure.count, IDLE_MS);
  return isBusy(state) ? BUSY_MS : IDLE_MS;
}

function isBusy({ list, answer }: State): boolean {
  if (!list || list.state === "scanning") return true;
  return list.runs.some((entry) => entry.state !== "done") || (answer !== undefined && answer.state !== "done");
}
