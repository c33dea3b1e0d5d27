// One training in the list: its name, its step times, and its verdict or why there is none.
import { colourOf } from "../../shared/colours";
import { notJudged, type TrainingEntry } from "../../shared/run/trainings";
import { duration, shortMoment, shortShare } from "../../shared/text/format";
import { leadingAlert, titleOf } from "../../shared/text/names";
import { health, severity, withoutVerdict } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { MiddleCut } from "../../shared/widgets/middle_cut";
import { Stalled } from "../../shared/widgets/stalled";
import { Sparkline } from "../../shared/widgets/sparkline";

/** The time is shown only where it tells trainings of one run apart: the name needs the room. */
export function Entry({ entry }: { entry: TrainingEntry }) {
  return (
    <>
      <div class="line">
        <span class="name">
          <MiddleCut text={entry.label} />
        </span>
        {entry.label.includes("›") && <span class="figure muted">{shortMoment(entry.at)}</span>}
        {entry.live && <span class="live-dot" title="Being written now" />}
        <Sparkline values={entry.step_times_ns} />
        {entry.step_ns !== undefined && (
          <span class="figure muted" title="Mean step time, without the profiler if measured">
            {duration(entry.step_ns)}
          </span>
        )}
      </div>
      <div class="line outcome">
        <Stalled members={entry.members} />
        <Outcome entry={entry} />
      </div>
    </>
  );
}

/** The verdict, or why there is none (yet). */
function Outcome({ entry }: { entry: TrainingEntry }) {
  const { state, progress, verdict, health: status, reason: code, evidence_source } = entry;
  if (state === "analysing") {
    return (
      <>
        <span class="muted">analysing</span>
        <progress value={progress} max={1} aria-label="Progress of the analysis" />
      </>
    );
  }
  if (state !== "done") return <span class="muted">{state}</span>;
  if (verdict) {
    const alert = leadingAlert(verdict);
    return (
      <>
        {!alert && <span class="dot" style={{ background: colourOf(verdict.regime) }} />}
        <span class="what">{titleOf(verdict)}</span>
        <span class={`tone-${severity(verdict).tone}`} title={severity(verdict).text}>
          <Icon name={severity(verdict).icon} />
        </span>
        {!alert && <span class="figure">{shortShare(verdict.share)}</span>}
      </>
    );
  }
  if (notJudged(entry)) return <span class="what muted">not judged together yet</span>;
  if (evidence_source === "snapshot" && status === "ok") return <span class="what muted">memory only</span>;
  const { icon, tone } = health(status);
  return (
    <>
      <span class={`tone-${tone}`}>
        <Icon name={icon} />
      </span>
      <span class="what muted">{withoutVerdict(status, code)}</span>
    </>
  );
}
