// The findings, costliest first: the cost, the gain of the fix, the fix itself and the evidence.
import type { ComponentChildren } from "preact";
import type { Evidence, Finding, Speedup } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { occurrence } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { CostAndGain, FindingCard } from "../../shared/widgets/finding_card";
import { Places, type ShowPlace } from "./places";
import { Review, type Reviewed } from "./review";

interface Props {
  readonly findings: readonly Finding[];
  /** Further findings, about the memory, and whether they are more urgent. */
  readonly beside?: ComponentChildren;
  readonly besideLeads: boolean;
  readonly begin: number | undefined; // start of the window on the recording's clock, ns
  readonly judged: boolean;
  /** Shows the range of a piece of evidence. Undefined if that is not possible. */
  readonly showFocus: ((focus: Focus) => void) | undefined;
  readonly reviewed: Reviewed | undefined;
  readonly showPlace?: ShowPlace | undefined;
}

export function Findings({ findings, beside, besideLeads, begin, judged, showFocus, reviewed, showPlace }: Props) {
  if (findings.length === 0 && !beside) {
    return judged ? (
      <section>
        <h2>What to change</h2>
        <p class="muted">No known cause was found in this recording.</p>
      </section>
    ) : null;
  }
  return (
    <section>
      <h2>What to change</h2>
      {besideLeads && beside}
      {findings.map((finding, index) => (
        <OneFinding key={`${finding.cause} ${index}`} finding={finding} begin={begin} showFocus={showFocus} reviewed={reviewed} showPlace={showPlace} />
      ))}
      {!besideLeads && beside}
    </section>
  );
}

type Context = Pick<Props, "begin" | "showFocus">;

function OneFinding({ finding, begin, showFocus, reviewed, showPlace }: Context & Pick<Props, "reviewed" | "showPlace"> & { finding: Finding }) {
  const { cause, regime, cost_share, evidence, fix, speedup: gain, where } = finding;
  const name = finding.title || title(cause);
  return (
    <FindingCard
      cause={cause}
      title={name}
      regime={regime}
      aside={<CostAndGain cost={cost_share} of="of the analysed time" speedup={gain} />}
      places={<Places where={where} showPlace={showPlace} />}
      fix={fix}
      notes={gain && <Assumptions of={gain} />}
      evidence={evidence}
      occurrence={(item) => <Occurrence item={item} begin={begin} showFocus={showFocus} />}
    >
      {reviewed && <Review {...reviewed} cause={cause} title={name} />}
    </FindingCard>
  );
}

function Assumptions({ of: { basis, assumes, because } }: { of: Speedup }) {
  return (
    <>
      {basis === "replay" && assumes && <p class="muted footnote">The simulation assumes that {assumes}.</p>}
      {basis === "estimate" && <p class="muted footnote">This assumes that {assumes}.</p>}
      {because && <p class="muted footnote">{because}</p>}
    </>
  );
}

function Occurrence({ item, begin, showFocus }: Context & { item: Evidence }) {
  const where = occurrence(item, begin);
  if (!where) return null;
  if (!showFocus || item.begin_ns === undefined || item.end_ns === undefined) return <small>for example {where}</small>;
  const focus = { begin: item.begin_ns, end: item.end_ns, label: item.label };
  return (
    <small>
      <button type="button" class="link" onClick={() => showFocus(focus)}>
        for example {where}
        <span class="visually-hidden">: show it on the timeline</span>
      </button>
    </small>
  );
}
