// The prediction of a recording under other conditions: the headline, the times, the waterfall, and what to fix first.
import { colourOf } from "../../../shared/colours";
import type { FirstFix, Prediction as PredictedTime, Report, WhatIf } from "../../../shared/report";
import { findingOf } from "../../../shared/text/causes";
import { duration, factor } from "../../../shared/text/format";
import { Answer } from "../../../shared/widgets/answer";
import { Fact } from "../../../shared/widgets/fact";
import { Notes } from "../../../shared/widgets/notes";
import { WaterfallTable } from "../../../shared/widgets/waterfall_table";
import { cost, interval, intervalOfTime, predictionBadge, predictionBasis } from "./summary";

interface Props {
  readonly prediction: WhatIf;
  readonly report: Report;
  /** Opens the diagnosis at a cause's card. */
  readonly show: (cause: string) => void;
}

export function Prediction({ prediction, report, show }: Props) {
  const { after, assumptions } = prediction;
  return (
    <>
      <Answer headline={prediction.headline} badge={predictionBadge(prediction)} />
      {after && <Figures prediction={prediction} after={after} />}
      {after && <FixFirst prediction={prediction} report={report} show={show} />}
      {after && <WaterfallTable times={{ by_regime: prediction.by_regime, a_ns: prediction.step_ns, b_ns: after.step_ns, per: prediction.per }} names={TIME_NAMES} />}
      <Notes lines={assumptions} title="Assumptions" />
      <Notes lines={prediction.notes.filter((note) => !prediction.headline.includes(note))} title="Notes" />
    </>
  );
}

const TIME_NAMES = { a: "Now", b: "After", title: "Before and after the change", totals: ["Now in total", "After in total"], inB: "after" } as const;

function Figures({ prediction, after }: { prediction: WhatIf; after: PredictedTime }) {
  return (
    <section>
      <dl class="facts">
        <Fact name={`Time per ${prediction.per} now`} value={duration(prediction.step_ns)} note="as recorded" />
        <Fact name={`Time per ${prediction.per} after`} value={duration(after.step_ns)} note={intervalOfTime(prediction, after)} />
        <Fact name="Speedup" value={factor(after.speedup)} note={interval(after)} />
      </dl>
      <p class="muted footnote">{predictionBasis(prediction.basis)}.</p>
    </section>
  );
}

/** What would still cost time after the change, apart from useful device work. */
function FixFirst({ prediction: { fix_first: fixes, per }, report, show }: Props) {
  return (
    <section class="fix-first">
      <h2>What still costs time after the change</h2>
      {fixes.length === 0 ? (
        <p class="muted">Almost the whole {per} would be useful device work.</p>
      ) : (
        <ol>
          {fixes.map((fix) => (
            <Fix key={fix.cause} fix={fix} per={per} report={report} show={show} />
          ))}
        </ol>
      )}
    </section>
  );
}

function Fix({ fix, per, report, show }: { fix: FirstFix; per: string; report: Report; show: (cause: string) => void }) {
  const finding = findingOf(report, fix.cause);
  return (
    <li style={{ borderInlineStartColor: colourOf(finding?.regime ?? fix.cause) }}>
      {finding ? (
        <button type="button" class="link" onClick={() => show(fix.cause)}>
          {fix.title}
          <span class="visually-hidden">: show it in the diagnosis</span>
        </button>
      ) : (
        fix.title
      )}
      <small>{cost(fix, per)}</small>
    </li>
  );
}
