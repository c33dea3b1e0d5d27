// Several recordings in a row: a sweep as a curve, settings and a history as bars, and in words what they tell.
import { settled } from "../../shared/server/polling";
import { count } from "../../shared/text/format";
import type { RunEntry, RunSeries } from "../../shared/report";
import { FEWEST } from "./series_keys";
import { seriesMarkdown } from "./markdown";
import type { Members } from "./members";
import { about, kneeOf } from "./summary";
import { parted } from "../compare/summary";
import type { Session } from "../../app/session";
import { addStyle } from "../../shared/page/style_sheet";
import { keyOf } from "../../app/state";
import sheet from "./series.css";
import { Awaited } from "../../shared/widgets/request";
import { Listed } from "../compare/outcome";
import { CopyButton } from "../../shared/widgets/copy_button";
import { Curve } from "./curve";
import { SeriesTable } from "./series_table";

addStyle(sheet);

interface Props {
  readonly session: Session;
  readonly members: Members;
  readonly chosen: RunEntry;
  readonly since: unknown; // another object where a recording may have changed
  readonly chooseOthers: () => void;
}

export function Series({ session, members: { entries, missing }, chosen, since, chooseOthers }: Props) {
  const ids = entries.map(({ id }) => id);
  const show = (entry: RunEntry) => {
    session.choose(keyOf(entry));
    session.open("diagnosis");
  };
  const reverse = () => session.lineUp([...entries].reverse().map(keyOf));
  return (
    <div class="comparison series">
      <div class="doings">
        <button type="button" onClick={chooseOthers}>
          Choose others
        </button>
      </div>
      {missing.length > 0 && <Missing keys={missing} />}
      <Awaited
        about={`${ids.join(" ")} series`}
        since={since}
        waiting={`Laying ${count(ids.length)} recordings in a row: each of them is read…`}
        ask={(signal, tell) => settled(() => session.client.series(ids, signal), signal, tell)}
      >
        {({ series: told }) => (told ? <Told told={told} entries={entries} chosen={chosen} show={show} reverse={reverse} /> : <p>The server’s answer holds no series. Reload the page: it may be older than the server.</p>)}
      </Awaited>
    </div>
  );
}

function Missing({ keys }: { keys: readonly string[] }) {
  return (
    <p class="notice" role="status">
      Left out, because there is no such trace under the logdir (any more):{" "}
      {keys.map((key, place) => (
        <span key={key}>
          {place > 0 && ", "}
          <code>{key}</code>
        </span>
      ))}
      .
    </p>
  );
}

interface ToldProps {
  readonly told: RunSeries;
  readonly entries: readonly RunEntry[];
  readonly chosen: RunEntry;
  readonly show: (entry: RunEntry) => void;
  readonly reverse: () => void;
}

function Told({ told, entries, chosen, show, reverse }: ToldProps) {
  const { points, knee, kind, headline } = told;
  const [first, more] = parted(headline);
  return (
    <>
      <section class="outcome-of-both">
        <h2 class="answer">{first}</h2>
        {more && <p class="measure more">{more}</p>}
        {kneeOf(told) && knee && (
          <p class="measure more">
            <b>The knee is at {knee.value}</b>: {knee.because}.
          </p>
        )}
        <ul class="badges">
          <li>
            <CopyButton text={() => seriesMarkdown(told)} words="Copy as Markdown" />
          </li>
          {kind === "history" && points.length >= FEWEST && (
            <li class="doings">
              <button type="button" class="small" onClick={reverse}>
                Reverse the order
              </button>
            </li>
          )}
        </ul>
      </section>
      {points.length > 0 && (
        <section class="row-of-runs">
          <h2>{about(told)}</h2>
          {kind === "sweep" && points.length >= FEWEST && <Curve told={told} />}
          <SeriesTable told={told} entries={entries} chosen={chosen} show={show} />
        </section>
      )}
      <Listed lines={told.notes} title={kind === "apart" ? "Why there is no curve" : "To keep in mind"} />
    </>
  );
}
