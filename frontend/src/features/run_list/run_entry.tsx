// One recording in the list: its name, its step times, and its verdict or why there is none.
import { colourOf } from "../../shared/colours";
import type { RunEntry } from "../../shared/report";
import { duration, shortMoment, shortShare } from "../../shared/text/format";
import { sourceParts } from "../../shared/text/names";
import { health, severity, withoutVerdict } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";

export function Entry({ entry }: { entry: RunEntry }) {
  const { name, at } = sourceParts(entry.source);
  return (
    <>
      <div class="line">
        <span class="name">
          <bdi>{name}</bdi>
        </span>
        {at !== undefined && <span class="figure muted">{shortMoment(at)}</span>}
        {entry.live && <span class="live-dot" title="Being written now" />}
        <Sparkline each={entry.step_times_ns} />
        {entry.step_ns !== undefined && (
          <span class="figure muted" title="Mean step time">
            {duration(entry.step_ns)}
          </span>
        )}
      </div>
      <div class="line outcome">
        <Outcome entry={entry} />
      </div>
    </>
  );
}

const SPARK_WIDTH = 40;
const SPARK_HEIGHT = 16;

/** The step times as a small line chart that starts at zero. It shows whether they vary. */
function Sparkline({ each }: { each: readonly number[] }) {
  if (each.length < 3) return null;
  const longest = Math.max(...each);
  const points = each.map((ns, step) => `${(step / (each.length - 1)) * SPARK_WIDTH} ${SPARK_HEIGHT - 1 - (ns / longest) * (SPARK_HEIGHT - 2)}`);
  return (
    <svg class="spark" width={SPARK_WIDTH} height={SPARK_HEIGHT} viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} aria-hidden="true">
      <path d={`M${points.join("L")}`} />
    </svg>
  );
}

/** The verdict, or why there is none (yet). */
function Outcome({ entry: { state, progress, verdict, health: status, reason: code } }: { entry: RunEntry }) {
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
    return (
      <>
        <span class="dot" style={{ background: colourOf(verdict.regime) }} />
        <span class="what">{verdict.title || verdict.regime}</span>
        <span class={`tone-${severity(verdict).tone}`} title={severity(verdict).text}>
          <Icon name={severity(verdict).icon} />
        </span>
        <span class="figure">{shortShare(verdict.share)}</span>
      </>
    );
  }
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
