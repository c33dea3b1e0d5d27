// The causes, dearest first: what each costs, what its fix would bring, the evidence, the fix.
import { colourOf } from "../../shared/colours";
import { evidence as valueOf, occurrence, share, speedup } from "../../shared/text/format";
import { title } from "../../shared/text/names";
import type { Evidence, Finding } from "../../shared/report";
import type { Focus } from "../../app/state";
import { Code } from "../../shared/widgets/code_block";

interface Props {
  readonly findings: readonly Finding[];
  readonly begin: number | undefined; // where the window begins on the recording's clock, ns
  readonly judged: boolean;
  /** Shows where evidence can be seen; absent where nothing can be. */
  readonly look: ((focus: Focus) => void) | undefined;
}

export function Findings({ findings, begin, judged, look }: Props) {
  if (findings.length === 0) {
    return judged ? (
      <section>
        <h2>What to change</h2>
        <p class="muted">None of the causes that are looked for shows in this recording.</p>
      </section>
    ) : null;
  }
  return (
    <section>
      <h2>What to change</h2>
      {findings.map((finding, index) => (
        <FindingCard key={`${finding.cause} ${index}`} finding={finding} begin={begin} look={look} />
      ))}
    </section>
  );
}

type Shown = Pick<Props, "begin" | "look">;

function FindingCard({ finding, begin, look }: Shown & { finding: Finding }) {
  const { fix } = finding;
  const { gain, basis } = speedup(finding.speedup);
  return (
    <section class="card finding" data-cause={finding.cause} style={{ borderInlineStartColor: colourOf(finding.regime) }}>
      <header>
        <h3>{finding.title || title(finding.cause)}</h3>
        <dl class="stakes">
          <div>
            <dt>Costs</dt>
            <dd>
              {share(finding.cost_share)} <small>of the time judged</small>
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
      {fix && (
        <>
          <p class="summary">{fix.summary}</p>
          {fix.code && <Code text={fix.code} label={`the change for “${finding.title || title(finding.cause)}”`} />}
          {fix.confirm && (
            <p class="confirm">
              <strong>To confirm:</strong> {fix.confirm}
            </p>
          )}
        </>
      )}
      {finding.speedup?.basis === "replay" && finding.speedup.assumes && (
        <p class="muted footnote">The simulation takes it that {finding.speedup.assumes}.</p>
      )}
      {finding.speedup?.because && <p class="muted footnote">{finding.speedup.because}</p>}
      {finding.evidence.length > 0 && <EvidenceTable evidence={finding.evidence} begin={begin} look={look} />}
    </section>
  );
}

function EvidenceTable({ evidence, begin, look }: Shown & { evidence: readonly Evidence[] }) {
  return (
    <table class="evidence" aria-label="Evidence">
      <thead>
        <tr>
          <th scope="col">Evidence</th>
          <th scope="col" class="figure">Measured</th>
          <th scope="col">Held against</th>
        </tr>
      </thead>
      <tbody>
        {evidence.map((item, index) => (
          <tr key={index}>
            <th scope="row">
              {item.label}
              <Where item={item} begin={begin} look={look} />
            </th>
            {item.unit === "text" && !item.compared_with ? (
              <td class="words" colSpan={2}>
                {valueOf(item)}
              </td>
            ) : (
              <>
                <td class={item.unit === "text" ? "words" : "figure"}>{valueOf(item)}</td>
                <td class="against">{item.compared_with}</td>
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Where({ item, begin, look }: Shown & { item: Evidence }) {
  const where = occurrence(item, begin);
  if (!where) return null;
  if (!look || item.begin_ns === undefined || item.end_ns === undefined) return <small>for example {where}</small>;
  const focus = { begin: item.begin_ns, end: item.end_ns, label: item.label };
  return (
    <small>
      <button type="button" class="link" onClick={() => look(focus)}>
        for example {where}
        <span class="spoken">: show it on the timeline</span>
      </button>
    </small>
  );
}
