// The timeline of a recording. It can be zoomed and panned over tiles from the server.
import { useMemo } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { Timeline as TimelineMessage } from "../../shared/report";
import type { ViewProps } from "../../shared/run/view_props";
import type { Span } from "../../shared/run/viewport";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import { duration } from "../../shared/text/format";
import { Request } from "../../shared/widgets/request";
import sheet from "./timeline.css";
import { TimelineCanvas } from "./timeline_canvas";

addStyle(charts);
addStyle(sheet);

const OVERVIEW_PIXELS = 512;

export function TimelineView(props: ViewProps) {
  const { client, entry, report } = props;
  return (
    <Request
      subject={`${entry.id} timeline`}
      version={report}
      waiting="Reading the recording…"
      send={(signal, onProgress) => poll(() => client.overview(entry.id, OVERVIEW_PIXELS, signal), signal, onProgress)}
    >
      {({ timeline }) =>
        timeline && timeline.last_ns > timeline.first_ns ? (
          <Timeline {...props} overview={timeline} />
        ) : (
          <p class="muted">The recording contains no events with a duration, so there is no timeline.</p>
        )
      }
    </Request>
  );
}

function Timeline(props: ViewProps & { readonly overview: TimelineMessage }) {
  const { report, overview } = props;
  const whole = useMemo<Span>(() => ({ begin: overview.first_ns, end: overview.last_ns }), [overview]);
  const titles = useMemo(() => new Map(report.account.map((row) => [row.regime, row.title])), [report]);
  return (
    <section class="timeline">
      <h2 class="visually-hidden">Timeline</h2>
      <TimelineCanvas {...props} whole={whole} titles={titles} />
      {overview.lanes_left_out > 0 && (
        <p class="muted footnote">
          {overview.lanes_left_out === 1 ? "The least active thread or stream is" : `The ${overview.lanes_left_out} least active threads and streams are`}{" "}
          not shown. The recording spans {duration(whole.end - whole.begin)}.
        </p>
      )}
    </section>
  );
}
