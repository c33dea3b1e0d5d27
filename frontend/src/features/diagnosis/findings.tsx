// The findings, costliest first: the cost, the gain of the fix, the fix itself and the evidence.
import type { ComponentChildren } from "preact";
import { colourOf } from "../../shared/colours";
import type { Evidence, Finding } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { evidence as valueOf, occurrence, share, speedup } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { CodeBlock } from "../../shared/widgets/code_block";
import { WithCode } from "../../shared/widgets/with_code";
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
        <FindingCard key={`${finding.cause} ${index}`} finding={finding} begin={begin} showFocus={showFocus} reviewed={reviewed} showPlace={showPlace} />
      ))}
      {!besideLeads && beside}
    </section>
  );
}

type Context = Pick<Props, "begin" | "showFocus">;

function FindingCard({ finding, begin, showFocus, reviewed, showPlace }: Context & Pick<Props, "reviewed" | "showPlace"> & { finding: Finding }) {
  const { fix } = finding;
  const { gain, basis } = speedup(finding.speedup);
  return (
    <section class="card finding" data-cause={finding.cause} style={{ borderInlineStartColor: colourOf(finding.regime) }}>
      <header>
        <h3>{finding.title || title(finding.cause)}</h3>
        <dl class="cost-and-gain">
          <div>
            <dt>Costs</dt>
            <dd>
              {share(finding.cost_share)} <small>of the analysed time</small>
            </dd>
          </div>
          <div>
            <dt>Speedup</dt>
            <dd>
              {gain} <small>{basis}</small>
            </dd>
          </div>
        </dl>
      </header>
      <Places where={finding.where} showPlace={showPlace} />
      {fix && (
        <>
          <p class="summary"><WithCode text={fix.summary} /></p>
          {fix.code && <CodeBlock text={fix.code} label={`code that fixes “${finding.title || title(finding.cause)}”`} />}
          {fix.confirm && (
            <p class="confirm">
              <strong>To confirm:</strong> {fix.confirm}
            </p>
          )}
        </>
      )}
      {finding.speedup?.basis === "replay" && finding.speedup.assumes && (
        <p class="muted footnote">The simulation assumes that {finding.speedup.assumes}.</p>
      )}
      {finding.speedup?.basis === "estimate" && <p class="muted footnote">This assumes that {finding.speedup.assumes}.</p>}
      {finding.speedup?.because && <p class="muted footnote">{finding.speedup.because}</p>}
      {finding.evidence.length > 0 && <EvidenceTable evidence={finding.evidence} begin={begin} showFocus={showFocus} />}
      {reviewed && <Review {...reviewed} cause={finding.cause} title={finding.title || title(finding.cause)} />}
    </section>
  );
}

function EvidenceTable({ evidence, begin, showFocus }: Context & { evidence: readonly Evidence[] }) {
  return (
    <table class="evidence" aria-label="Evidence">
      <thead>
        <tr>
          <th scope="col">Evidence</th>
          <th scope="col" class="figure">Measured</th>
          <th scope="col">Compared with</th>
        </tr>
      </thead>
      <tbody>
        {evidence.map((item, index) => (
          <tr key={index}>
            <th scope="row">
              {item.label}
              <Occurrence item={item} begin={begin} showFocus={showFocus} />
            </th>
            {item.unit === "text" && !item.compared_with ? (
              <td class="text" colSpan={2}>
                {valueOf(item)}
              </td>
            ) : (
              <>
                <td class={item.unit === "text" ? "text" : "figure"}>{valueOf(item)}</td>
                <td class="against">{item.compared_with}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
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
