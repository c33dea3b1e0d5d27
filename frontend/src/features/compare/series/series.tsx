// Several recordings as a series: a sweep as a curve, settings and a history as bars, and the result as text.
import { addStyle } from "../../../shared/page/style_sheet";
import type { RunEntry, RunSeries } from "../../../shared/report";
import { keyOf } from "../../../shared/run/keys";
import type { Session } from "../../../shared/run/session";
import { poll } from "../../../shared/server/polling";
import { count } from "../../../shared/text/format";
import { Answer } from "../../../shared/widgets/answer";
import { Notes } from "../../../shared/widgets/notes";
import { Request } from "../../../shared/widgets/request";
import { Curve } from "./curve";
import type { Members } from "./members";
import sheet from "./series.css";
import { MIN_RUNS } from "./series_keys";
import { SeriesTable } from "./series_table";
import { seriesTitle } from "./summary";

addStyle(sheet);

interface Props {
  readonly session: Session;
  readonly members: Members;
  readonly chosen: RunEntry;
  readonly version: unknown; // another object after one of the recordings has changed
  readonly chooseOthers: () => void;
}

export function Series({ session, members: { entries, missing }, chosen, version, chooseOthers }: Props) {
  const ids = entries.map(({ id }) => id);
  const show = (entry: RunEntry) => {
    session.choose(keyOf(entry));
    session.open("diagnosis");
  };
  const reverse = () => session.compareSeries([...entries].reverse().map(keyOf));
  return (
    <div class="comparison series">
      <div class="actions">
        <button type="button" onClick={chooseOthers}>
          Choose others
        </button>
      </div>
      {missing.length > 0 && <Missing keys={missing} />}
      <Request
        subject={`${ids.join(" ")} series`}
        version={version}
        waiting={`Reading ${count(ids.length)} recordings…`}
        send={(signal, onProgress) => poll(() => session.client.series(ids, signal), signal, onProgress)}
      >
        {({ series }) =>
          series ? (
            <Content series={series} entries={entries} chosen={chosen} show={show} reverse={reverse} />
          ) : (
            <p>The server’s response contains no series. Reload the page: it may be older than the server.</p>
          )
        }
      </Request>
    </div>
  );
}

function Missing({ keys }: { keys: readonly string[] }) {
  return (
    <p class="notice" role="status">
      Left out, because they are not traces under the logdir:{" "}
      {keys.map((key, index) => (
        <span key={key}>
          {index > 0 && ", "}
          <code>{key}</code>
        </span>
      ))}
      .
    </p>
  );
}

interface ContentProps {
  readonly series: RunSeries;
  readonly entries: readonly RunEntry[];
  readonly chosen: RunEntry;
  readonly show: (entry: RunEntry) => void;
  readonly reverse: () => void;
}

function Content({ series, entries, chosen, show, reverse }: ContentProps) {
  const { points, kind, headline } = series;
  const reverseButton = kind === "history" && points.length >= MIN_RUNS && (
    <li class="actions">
      <button type="button" class="small" onClick={reverse}>
        Reverse the order
      </button>
    </li>
  );
  return (
    <>
      <Answer headline={headline} buttons={reverseButton} />
      {points.length > 0 && (
        <section class="series-points">
          <h2>{seriesTitle(series)}</h2>
          {kind === "sweep" && points.length >= MIN_RUNS && <Curve series={series} />}
          <SeriesTable series={series} entries={entries} chosen={chosen} show={show} />
        </section>
      )}
      <Notes lines={series.notes} title={kind === "apart" ? "Why there is no curve" : "Notes"} />
    </>
  );
}
