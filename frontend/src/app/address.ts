// The parameters of the tab in the address. Each of them is listed once and used in both directions.
import { seriesKeys, seriesText } from "../features/compare/series/series_keys";
import type { UrlKey } from "../shared/page/host";
import { formatSpan, parseSpan } from "../shared/run/focus";
import { viewNamed } from "../shared/run/views";
import { withChosen, withField, type State } from "./state";

interface Parameter {
  readonly name: UrlKey;
  /** Whether a change leads to another place, with a history entry of its own, or to a detail of the current one. */
  readonly leadsTo: (before: string, after: string) => HistoryEntry;
  /** The text of the parameter; "" leaves it out. */
  readonly read: (state: State) => string;
  /** The state with the parameter of the address; undefined if the address does not contain it. */
  readonly apply: (state: State, text: string | undefined) => State;
}

/** A new entry in the browser's history, or a change of the current one. */
export type HistoryEntry = "new" | "same";

const place = (): HistoryEntry => "new";
const detail = (): HistoryEntry => "same";
const placeIfOpened = (before: string, after: string): HistoryEntry => (before === "" || after === "" ? "new" : "same");

/** In the order in which they are applied: another recording resets the ranges of time. */
export const PARAMETERS: readonly Parameter[] = [
  { name: "run", leadsTo: place, read: ({ chosen }) => chosen ?? "", apply: (state, text) => (text === undefined ? state : withChosen(state, text)) },
  { name: "view", leadsTo: place, read: ({ view }) => (view === "diagnosis" ? "" : view), apply: (state, text) => ({ ...state, view: viewNamed(text) }) },
  { name: "at", leadsTo: detail, read: ({ visible }) => formatSpan(visible), apply: (state, text) => withField(state, "visible", parseSpan(text)) },
  { name: "mark", leadsTo: detail, read: ({ focus }) => formatSpan(focus), apply: (state, text) => withField(state, "focus", markedSpan(text)) },
  { name: "with", leadsTo: place, read: ({ baseline }) => baseline ?? "", apply: (state, text) => withField(state, "baseline", text) },
  { name: "row", leadsTo: place, read: ({ series }) => seriesText(series ?? []), apply: (state, text) => withField(state, "series", seriesKeys(text)) },
  { name: "if", leadsTo: place, read: ({ conditions }) => conditions ?? "", apply: (state, text) => withField(state, "conditions", text) },
  { name: "tree", leadsTo: detail, read: ({ tree }) => tree ?? "", apply: (state, text) => withField(state, "tree", text) },
  { name: "all", leadsTo: placeIfOpened, read: ({ overview }) => overview ?? "", apply: (state, text) => withField(state, "overview", text) },
];

const markedSpan = (text: string | undefined) => {
  const span = parseSpan(text);
  return span && { ...span, label: "Evidence" };
};

/** The state that the address asks for. Returns the same object if the address already matches the state. */
export function withAddress(state: State, valueOf: (name: UrlKey) => string | undefined): State {
  return PARAMETERS.reduce((current, { name, read, apply }) => {
    const text = valueOf(name);
    return (text ?? "") === read(current) ? current : apply(current, text);
  }, state);
}

/** Writes what has changed into the address, with at most one new history entry for all of it. */
export function writeAddress(
  state: State,
  valueOf: (name: UrlKey) => string | undefined,
  put: (name: UrlKey, text: string, entry: HistoryEntry) => void,
): void {
  const changed = PARAMETERS.filter(({ name, read }) => (valueOf(name) ?? "") !== read(state));
  let entry: HistoryEntry = changed.some(({ name, read, leadsTo }) => leadsTo(valueOf(name) ?? "", read(state)) === "new") ? "new" : "same";
  for (const { name, read } of changed) {
    put(name, read(state), entry);
    entry = "same";
  }
}
