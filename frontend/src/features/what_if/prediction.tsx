// What is foretold of a recording under other conditions: the sentence, now and then, the way from one to the other, what to mend first.
import { colourOf } from "../../shared/colours";
import { findingOf } from "../compare/summary";
import { duration, factor } from "../../shared/text/format";
import type { FirstFix, Prediction, Report, WhatIf } from "../../shared/report";
import { whatIfMarkdown } from "./markdown";
import { cost, foretold, interval, intervalOfTime, outlook } from "./summary";
import { Answer } from "../../shared/widgets/answer";
import { Fact } from "../../shared/widgets/fact";
import { Listed } from "../compare/outcome";
import { WaterfallTable } from "../../shared/widgets/waterfall_table";

interface Props {
  readonly told: WhatIf;
  readonly report: Report;
  /** Opens the diagnosis at a cause's card. */
  readonly show: (cause: string) => void;
}

export function Foretold({ told, report, show }: Props) {
  const { after, assumptions } = told;
  return (
    <>
      <Answer headline={told.headline} badge={outlook(told)} markdown={() => whatIfMarkdown(told)} />
      {after && <Figures told={told} after={after} />}
      {after && <First told={told} report={report} show={show} />}
      {after && <WaterfallTable told={{ by_regime: told.by_regime, a_ns: told.step_ns, b_ns: after.step_ns, per: told.per }} sides={SIDES} />}
      <Listed lines={assumptions} title="What the prediction takes for granted" />
      <Listed lines={told.notes.filter((note) => !told.headline.includes(note))} title="To keep in mind" />
    </>
  );
}

const SIDES = { a: "Now", b: "Then", title: "From now to then", all: ["As it is now", "As it would be"], then: "then" } as const;

function Figures({ told, after }: { told: WhatIf; after: Prediction }) {
  return (
    <section>
      <dl class="facts">
        <Fact name={`A ${told.per} now`} value={duration(told.step_ns)} note="as recorded" />
        <Fact name={`A ${told.per} then`} value={duration(after.step_ns)} note={intervalOfTime(told, after)} />
        <Fact name="Speedup" value={factor(after.speedup)} note={interval(after)} />
      </dl>
      <p class="muted footnote">{foretold(told.basis)}.</p>
    </section>
  );
}

/** What would own the step then beside the device's own work. */
function First({ told: { fix_first: fixes, per }, report, show }: Props) {
  return (
    <section class="mend-first">
      <h2>What to mend first, so that the change is not wasted</h2>
      {fixes.length === 0 ? (
        <p class="muted">Nothing worth naming would be left of the {per} beside the device’s own work.</p>
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
          <span class="spoken">: show it in the diagnosis</span>
        </button>
      ) : (
        fix.title
      )}
      <small>{cost(fix, per)}</small>
    </li>
  );
}
