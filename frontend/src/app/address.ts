// The parameters of the tab in the address. Each of them is listed once and used in both directions.
import { seriesKeys, seriesText } from "../features/series/series_keys";
import type { UrlKey } from "../shared/page/host";
import { formatSpan, parseSpan } from "../shared/run/focus";
import { viewNamed } from "../shared/run/views";
import { withChosen, withField, type State } from "./state";

interface Parameter {
  readonly name: UrlKey;
  /** A place gets a history entry of its own; a detail, such as the visible range, replaces the current one. */
  readonly is: "place" | "detail";
  /** The text of the parameter; "" leaves it out. */
  readonly read: (state: State) => string;
  /** The state with the parameter of the address; undefined if the address does not contain it. */
  readonly apply: (state: State, text: string | undefined) => State;
}

/** In the order in which they are applied: another recording resets the ranges of time. */
export const PARAMETERS: readonly Parameter[] = [
  { name: "run", is: "place", read: ({ chosen }) => chosen ?? "", apply: (state, text) => (text === undefined ? state : withChosen(state, text)) },
  { name: "view", is: "place", read: ({ view }) => (view === "diagnosis" ? "" : view), apply: (state, text) => ({ ...state, view: viewNamed(text) }) },
  { name: "at", is: "detail", read: ({ visible }) => formatSpan(visible), apply: (state, text) => withField(state, "visible", parseSpan(text)) },
  { name: "mark", is: "detail", read: ({ focus }) => formatSpan(focus), apply: (state, text) => withField(state, "focus", markedSpan(text)) },
  { name: "with", is: "place", read: ({ baseline }) => baseline ?? "", apply: (state, text) => withField(state, "baseline", text) },
  { name: "row", is: "place", read: ({ series }) => seriesText(series ?? []), apply: (state, text) => withField(state, "series", seriesKeys(text)) },
  { name: "if", is: "place", read: ({ conditions }) => conditions ?? "", apply: (state, text) => withField(state, "conditions", text) },
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

export type HistoryEntry = "new" | "same";

/** Writes what has changed into the address, with at most one new history entry for all of it. */
export function writeAddress(
  state: State,
  valueOf: (name: UrlKey) => string | undefined,
  put: (name: UrlKey, text: string, entry: HistoryEntry) => void,
): void {
  const changed = PARAMETERS.filter(({ name, read }) => (valueOf(name) ?? "") !== read(state));
  let entry: HistoryEntry = changed.some(({ is }) => is === "place") ? "new" : "same";
  for (const { name, read } of changed) {
    put(name, read(state), entry);
    entry = "same";
  }
}
