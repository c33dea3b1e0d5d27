// The views beyond the diagnosis; each is a file of its own, fetched when it is first opened.
import type { Report, RunEntry } from "../shared/report";
import type { Session } from "./session";
import type { State, View } from "./state";
import { lazily } from "./lazy_view";
import { TAB_NAMES } from "./tabs";

const Timeline = lazily(async () => (await import("../features/timeline/timeline")).TimelineView);
const Tables = lazily(async () => (await import("../features/tables/tables")).TablesView);
const Roofline = lazily(async () => (await import("../features/roofline/roofline")).RooflineView);
const Ranks = lazily(async () => (await import("../features/ranks/ranks")).RanksView);
const Live = lazily(async () => (await import("../features/telemetry/telemetry")).LiveView);
const Compare = lazily(async () => (await import("../features/compare/compare")).CompareView);
const WhatIf = lazily(async () => (await import("../features/what_if/what_if")).WhatIfView);

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly state: State;
  readonly view: View; // that this recording has
}

export function Closer({ report, entry, session, state, view }: Props) {
  const { focus, against, row, supposed } = state;
  const given = { client: session.client, entry, report, focus, look: session.look };
  return (
    <div class="panel" id="panel" role="tabpanel" aria-label={TAB_NAMES[view]} tabIndex={-1}>
      {view === "timeline" && <Timeline {...given} />}
      {view === "tables" && <Tables {...given} />}
      {view === "roofline" && <Roofline {...given} />}
      {view === "ranks" && <Ranks {...given} choose={session.choose} />}
      {view === "live" && <Live {...given} />}
      {view === "compare" && <Compare session={session} report={report} entry={entry} runs={state.list?.runs ?? []} against={against} row={row} />}
      {view === "whatif" && <WhatIf session={session} report={report} entry={entry} supposed={supposed} />}
    </div>
  );
}
