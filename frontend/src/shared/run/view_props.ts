// What every view beyond the diagnosis is given.
import type { Client } from "../server/api";
import type { Report, RunEntry } from "../report";
import type { Focus } from "../../app/state";

export interface EvidenceProps {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly report: Report;
  /** The stretch of time that was asked for, by a click on evidence or by the address. */
  readonly focus: Focus | undefined;
  /** Shows a stretch of time on the timeline. */
  readonly look: (focus: Focus) => void;
}
