// The timeline of a recording: zoomed and panned over tiles that the server makes; what is seen is also a table.
import { useMemo } from "preact/hooks";
import { settled } from "../../shared/server/polling";
import { duration } from "../../shared/text/format";
import type { Timeline as Message } from "../../shared/report";
import { addStyle } from "../../shared/page/style_sheet";
import charts from "../../shared/style/charts.css";
import sheet from "./timeline.css";
import type { Span } from "../../shared/run/viewport";
import { Awaited } from "../../shared/widgets/request";
import type { EvidenceProps } from "../../shared/run/view_props";
import { Strip } from "./timeline_canvas";

addStyle(charts);
addStyle(sheet);

const OVERVIEW_PIXELS = 512;

export function TimelineView({ client, entry, report, focus, look }: EvidenceProps) {
  return (
    <Awaited
      about={`${entry.id} timeline`}
      since={report}
      waiting="Reading the recording…"
      ask={(signal, tell) => settled(() => client.overview(entry.id, OVERVIEW_PIXELS, signal), signal, tell)}
    >
      {({ timeline }) =>
        timeline && timeline.last_ns > timeline.first_ns ? (
          <Loaded client={client} entry={entry} report={report} focus={focus} look={look} overview={timeline} />
        ) : (
          <p class="muted">Nothing with a duration was recorded, so there is no timeline.</p>
        )
      }
    </Awaited>
  );
}

function Loaded(props: EvidenceProps & { readonly overview: Message }) {
  const { report, overview } = props;
  const whole = useMemo<Span>(() => ({ begin: overview.first_ns, end: overview.last_ns }), [overview]);
  const titles = useMemo(() => new Map(report.account.map((row) => [row.regime, row.title])), [report]);
  return (
    <section class="timeline">
      <h2 class="spoken">Timeline</h2>
      <Strip {...props} whole={whole} titles={titles} />
      {overview.lanes_left_out > 0 && (
        <p class="muted footnote">
          {overview.lanes_left_out === 1 ? "One thread or stream" : `${overview.lanes_left_out} threads and streams`} that did
          least {overview.lanes_left_out === 1 ? "is" : "are"} not shown. The recording spans {duration(whole.end - whole.begin)}.
        </p>
      )}
    </section>
  );
}
