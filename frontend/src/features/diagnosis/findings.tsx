// The findings, costliest first: the cost, the gain of the fix, the fix itself and the evidence.
import type { Evidence, Finding, Report, Speedup } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { occurrence } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { CostAndGain, FindingCard } from "../../shared/widgets/finding_card";
import { Fold } from "../../shared/widgets/fold";
import { AboutMemory, memoryFindings } from "./memory_findings";
import { Places, type ShowPlace } from "./places";
import { Review, type Reviewed } from "./review";

interface Props {
  readonly report: Report;
  /** Shows the range of a piece of evidence. Undefined if that is not possible. */
  readonly showFocus: ((focus: Focus) => void) | undefined;
  readonly reviewed: Reviewed | undefined;
  readonly showPlace?: ShowPlace | undefined;
  readonly showMemory: (() => void) | undefined;
}

/** The first finding, and the others folded. Those about the memory come first if they are more urgent. */
export function Findings({ report, showFocus, reviewed, showPlace, showMemory }: Props) {
  const begin = report.window?.begin_ns;
  const aboutTime = report.findings.map((finding, index) => (
    <OneFinding key={`${finding.cause} ${index}`} finding={finding} begin={begin} showFocus={showFocus} reviewed={reviewed} showPlace={showPlace} />
  ));
  const aboutMemory = memoryFindings(report).map((finding) => <AboutMemory key={finding.cause} finding={finding} showMemory={showMemory} reviewed={reviewed} />);
  const [first, ...others] = report.verdict?.memory_alert?.leads ? [...aboutMemory, ...aboutTime] : [...aboutTime, ...aboutMemory];
  if (!first) return report.verdict ? <p class="muted">No known cause was found in this recording.</p> : null;
  return (
    <section>
      <h2 class="visually-hidden">What to change</h2>
      {first}
      {others.length > 0 && <Fold title={others.length === 1 ? "One more finding" : `${others.length} more findings`}>{others}</Fold>}
    </section>
  );
}

interface Context {
  readonly begin: number | undefined; // start of the window on the recording's clock, ns
  readonly showFocus: Props["showFocus"];
}

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
