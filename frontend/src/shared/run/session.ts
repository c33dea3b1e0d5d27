// What a view can ask the application to do.
import type { Client } from "../server/api";
import type { Focus } from "./focus";
import type { Key } from "./keys";
import type { TrainingEntry } from "./trainings";
import type { Span } from "./viewport";
import type { View } from "./views";

export interface Session {
  readonly client: Client;
  /** Shows another recording, in this view; without one the view stays. */
  readonly choose: (key: Key, view?: View) => void;
  /** Shows the recording of a training whose verdict counts; of a job, the view of all its ranks. */
  readonly openTraining: (training: TrainingEntry) => void;
  readonly open: (view: View) => void;
  /** Opens the timeline (or the telemetry) at this range and marks it. */
  readonly showFocus: (focus: Focus) => void;
  /** Stores the visible range of the timeline or the telemetry; undefined is everything. */
  readonly setVisible: (visible: Span | undefined) => void;
  /** Compares the chosen recording with this one. Without a key the user is asked which. */
  readonly compare: (key: Key | undefined) => void;
  /** Compares these recordings, which include the chosen one, as a series. Without keys the user is asked which. */
  readonly compareSeries: (keys: readonly Key[] | undefined) => void;
  /** Shows all recordings that a query of features/overview/query.ts asks for. */
  readonly showOverview: (query: string) => void;
  /** Predicts the chosen recording under these conditions (features/compare/what_if/conditions.ts); "" predicts nothing. */
  readonly predict: (conditions: string) => void;
  /** Opens the breakdown with these options (features/where/options.ts). */
  readonly showTree: (options: string) => void;
  /** Requests the list and the report now. */
  readonly refresh: () => void;
}
