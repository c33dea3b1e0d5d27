// The views beyond the diagnosis; each is a file of its own, fetched when it is first opened.
import type { Report, RunEntry } from "../report";
import type { Session } from "../session";
import type { Focus, Key, View } from "../state";
import { lazily } from "./lazily";

const Timeline = lazily(async () => (await import("./timeline")).TimelineView);
const Tables = lazily(async () => (await import("./tables")).TablesView);
const Roofline = lazily(async () => (await import("./roofline")).RooflineView);
const Ranks = lazily(async () => (await import("./ranks")).RanksView);
const Live = lazily(async () => (await import("./live")).LiveView);
const Compare = lazily(async () => (await import("./compare")).CompareView);

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly view: View;
  readonly focus: Focus | undefined;
  readonly runs: readonly RunEntry[];
  readonly against: Key | undefined;
}

export function Closer({ report, entry, session, view, focus, runs, against }: Props) {
  const given = { client: session.client, entry, report, focus, look: session.look };
  return (
    <div class="panel" id="panel" role="tabpanel" aria-label={view}>
      {view === "timeline" && <Timeline {...given} />}
      {view === "tables" && <Tables {...given} />}
      {view === "roofline" && <Roofline {...given} />}
      {view === "ranks" && <Ranks {...given} choose={session.choose} />}
      {view === "live" && <Live {...given} />}
      {view === "compare" && <Compare session={session} report={report} entry={entry} runs={runs} against={against} />}
    </div>
  );
}
