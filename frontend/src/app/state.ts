// The state of the tab and its reducer. No clock, no network, no page.
import { isOpen, type LiveJob } from "../shared/live";
import type { Report, ReportAnswer, RunEntry, RunList } from "../shared/report";
import type { Focus } from "../shared/run/focus";
import { keyOf, type Key } from "../shared/run/keys";
import { trainingOf, trainingsOf } from "../shared/run/trainings";
import type { Span } from "../shared/run/viewport";
import type { View } from "../shared/run/views";
import { recordingFor } from "./available_views";

/** The version of the report's schema that this tab was written for. A newer report is drawn as far as it is understood. */
export const KNOWN_SCHEMA = 2;

/** Consecutive failed requests. */
export interface Failure {
  readonly since: number; // epoch milliseconds of the first one
  readonly count: number;
  readonly message: string;
}

export interface State {
  readonly list?: RunList;
  readonly chosen?: Key; // may name a recording that is not (or no longer) in the list
  readonly answer?: ReportAnswer; // the latest response about the chosen recording
  readonly report?: Report; // the latest report of the chosen recording
  readonly live?: readonly LiveJob[]; // the jobs that train now
  readonly failure?: Failure;
  readonly filter: string;
  readonly view: View;
  readonly focus?: Focus; // the marked range of the chosen recording
  readonly visible?: Span; // the visible range of its timeline or telemetry
  readonly baseline?: Key; // recording A of a comparison; may name one that is not in the list
  readonly series?: readonly Key[]; // shown as long as the chosen recording is one of them
  readonly conditions?: string; // of a prediction, as features/compare/what_if/conditions.ts spells them
  readonly tree?: string; // what the breakdown shows, as features/where/options.ts spells it
  readonly overview?: string; // set while all recordings are shown: the query, as features/overview/query.ts spells it
}

export const START: State = { filter: "", view: "diagnosis" };

export type Action =
  | { readonly type: "runs"; readonly list: RunList }
  | { readonly type: "report"; readonly key: Key; readonly answer: ReportAnswer }
  | { readonly type: "live"; readonly jobs: readonly LiveJob[] }
  | { readonly type: "choose"; readonly key: Key }
  | { readonly type: "filter"; readonly text: string }
  | { readonly type: "view"; readonly view: View }
  | { readonly type: "focus"; readonly focus: Focus }
  | { readonly type: "visible"; readonly visible: Span | undefined }
  | { readonly type: "baseline"; readonly key: Key | undefined }
  | { readonly type: "series"; readonly keys: readonly Key[] | undefined }
  | { readonly type: "conditions"; readonly text: string | undefined }
  | { readonly type: "tree"; readonly text: string | undefined }
  | { readonly type: "overview"; readonly query: string }
  | { readonly type: "address"; readonly apply: (state: State) => State }
  | { readonly type: "polled" }
  | { readonly type: "failed"; readonly at: number; readonly message: string };

/** Returns the same object if the action changes nothing. */
export function reduce(state: State, action: Action): State {
  const next = changed(state, action);
  const isSamePlace = next.view === state.view && next.chosen === state.chosen && action.type !== "view" && membersOf(state).length > 0;
  return isSamePlace ? next : withRecordingFor(next);
}

function changed(state: State, action: Action): State {
  switch (action.type) {
    case "runs":
      return action.list === state.list ? state : withList(state, action.list);
    case "report":
      return action.key === state.chosen ? withAnswer(state, action.answer) : state; // else it is outdated
    case "live":
      return action.jobs === state.live ? state : { ...state, live: action.jobs };
    case "choose":
      return withField(withChosen(state, action.key), "overview", undefined);
    case "filter":
      return { ...state, filter: action.text };
    case "view":
      return withField(action.view === state.view ? state : { ...state, view: action.view }, "overview", undefined);
    case "focus":
      return { ...without(state, "visible"), view: timeView(state), focus: action.focus };
    case "visible":
      return withField(state, "visible", action.visible);
    case "baseline":
      return withField(state, "baseline", action.key);
    case "series":
      return equalKeys(action.keys, state.series) ? state : withField(state, "series", action.keys);
    case "conditions":
      return withField(state, "conditions", action.text);
    case "tree":
      return withField(state, "tree", action.text);
    case "overview":
      return withField(state, "overview", action.query);
    case "address":
      return action.apply(state);
    case "polled":
      return state.failure ? without(state, "failure") : state;
    case "failed": {
      const { since, count } = state.failure ?? { since: action.at, count: 0 };
      return { ...state, failure: { since, count: count + 1, message: action.message } };
    }
  }
}

type Optional = "failure" | "focus" | "visible" | "baseline" | "series" | "conditions" | "tree" | "overview";

/** The state with an optional field set, or without it for undefined. */
export function withField<K extends Optional>(state: State, field: K, value: State[K] | undefined): State {
  if (value === state[field]) return state;
  return value === undefined ? without(state, field) : { ...state, [field]: value };
}

function without(state: State, field: Optional): State {
  const { [field]: _, ...rest } = state;
  return rest;
}

/** The overview of a query that shows everything. */
export const WHOLE_OVERVIEW = "all";

/**
 * Of several trainings shows the overview, and of a single one its report, unless the address asks for something else.
 * The choice stays if another recording moves to the top of the list.
 */
function withList(state: State, list: RunList): State {
  const trainings = trainingsOf(list);
  const first = trainings[0];
  if (state.chosen !== undefined || first === undefined) return { ...state, list };
  const overview = state.overview ?? (trainings.length > 1 ? WHOLE_OVERVIEW : undefined);
  return withField({ ...state, list, chosen: keyOf(first) }, "overview", overview);
}

/** A recording that is analysed again keeps its last report until the next one arrives. */
function withAnswer(state: State, answer: ReportAnswer): State {
  if (answer === state.answer) return state;
  const report = answer.report ?? state.report;
  return report ? { ...state, answer, report } : { ...state, answer };
}

/** Chooses a recording and drops everything that belongs to the previous one. */
export function withChosen(state: State, chosen: Key): State {
  if (chosen === state.chosen) return state;
  const { answer: _answer, report: _report, focus: _focus, visible: _visible, ...rest } = state;
  return { ...rest, chosen };
}

/** A view that the chosen recording cannot have opens with another recording of the same training, if that has it. */
function withRecordingFor(state: State): State {
  const members = membersOf(state);
  const entry = members.find((member) => keyOf(member) === state.chosen);
  return entry ? withChosen(state, keyOf(recordingFor(state.view, entry, members))) : state;
}

function equalKeys(one: readonly Key[] | undefined, other: readonly Key[] | undefined): boolean {
  return one === other || (one?.length === other?.length && (one ?? []).every((key, index) => key === other?.[index]));
}

export function entryOf(state: State, key: Key | undefined): RunEntry | undefined {
  return state.list?.runs.find((entry) => keyOf(entry) === key);
}

/** The view that shows a range of time of the chosen recording. Telemetry has no timeline. */
function timeView(state: State): View {
  return chosenEntry(state)?.evidence_source === "telemetry" ? "live" : "timeline";
}

/** The chosen recording, once the list contains it. */
export function chosenEntry(state: State): RunEntry | undefined {
  return entryOf(state, state.chosen);
}

/** The recordings of its training. */
export const membersOf = ({ list, chosen }: State): readonly RunEntry[] => (list && trainingOf(list, chosen)?.members) ?? [];

/** Returns true if a recording was chosen that the finished scan did not find. */
export function hasVanished(state: State): boolean {
  return state.chosen !== undefined && state.list?.state === "ready" && !chosenEntry(state);
}

const BUSY_MS = 1_000;
const LIVE_MS = 5_000; // how often heartbeats are written
const IDLE_MS = 30_000;

/** The time until the next request: shorter while the server works, longer after each failure. */
export function pollDelay(state: State): number {
  if (state.failure) return Math.min(BUSY_MS * 2 ** state.failure.count, IDLE_MS);
  if (isBusy(state)) return BUSY_MS;
  return state.live?.some(isOpen) ? LIVE_MS : IDLE_MS;
}

function isBusy({ list, answer }: State): boolean {
  if (!list || list.state === "scanning") return true;
  return list.runs.some((entry) => entry.state !== "done") || (answer !== undefined && answer.state !== "done");
}
