// The parameters of the tab in the address. Each of them is listed once and used in both directions.
import { seriesKeys, seriesText } from "../features/series/series_keys";
import type { UrlKey } from "../shared/page/host";
import { formatSpan, parseSpan } from "../shared/run/focus";
import { viewNamed } from "../shared/run/views";
import { withChosen, withField, type State } from "./state";

interface Parameter {
  readonly name: UrlKey;
  /** The text of the parameter; "" leaves it out. */
  readonly read: (state: State) => string;
  /** The state with the parameter of the address; undefined if the address does not contain it. */
  readonly apply: (state: State, text: string | undefined) => State;
}

/** In the order in which they are applied: another recording resets the ranges of time. */
export const PARAMETERS: readonly Parameter[] = [
  { name: "run", read: ({ chosen }) => chosen ?? "", apply: (state, text) => (text === undefined ? state : withChosen(state, text)) },
  { name: "view", read: ({ view }) => (view === "diagnosis" ? "" : view), apply: (state, text) => ({ ...state, view: viewNamed(text) }) },
  { name: "at", read: ({ visible }) => formatSpan(visible), apply: (state, text) => withField(state, "visible", parseSpan(text)) },
  { name: "mark", read: ({ focus }) => formatSpan(focus), apply: (state, text) => withField(state, "focus", markedSpan(text)) },
  { name: "with", read: ({ baseline }) => baseline ?? "", apply: (state, text) => withField(state, "baseline", text) },
  { name: "row", read: ({ series }) => seriesText(series ?? []), apply: (state, text) => withField(state, "series", seriesKeys(text)) },
  { name: "if", read: ({ conditions }) => conditions ?? "", apply: (state, text) => withField(state, "conditions", text) },
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

/** Writes the state into the address. */
export function writeAddress(state: State, put: (name: UrlKey, text: string) => void): void {
  for (const { name, read } of PARAMETERS) put(name, read(state));
}
