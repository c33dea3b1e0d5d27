// The properties of every view that shows drill-down data of one recording.
import type { Report, RunEntry } from "../report";
import type { Client } from "../server/api";
import type { Focus } from "./focus";
import type { Span } from "./viewport";

export interface ViewProps {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly report: Report;
  /** The range to mark, from a click on evidence or from the address. */
  readonly focus: Focus | undefined;
  /** The visible range of the timeline or the telemetry, if one was chosen. */
  readonly visible: Span | undefined;
  /** Opens the timeline (or the telemetry) at a range and marks it. */
  readonly showFocus: (focus: Focus) => void;
  readonly setVisible: (visible: Span | undefined) => void;
}
