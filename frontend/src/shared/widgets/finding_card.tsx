// A problem of a recording or a job, about time or memory: what it costs, its fix and its evidence.
import type { ComponentChildren } from "preact";
import { colourOf } from "../colours";
import type { Evidence, Fix, Speedup } from "../report";
import { evidence as valueOf, share, speedup } from "../text/format";
import { CodeBlock } from "./code_block";
import { Fold } from "./fold";
import { WithCode } from "./with_code";

interface Props {
  readonly cause: string;
  readonly title: string;
  /** Below the title. */
  readonly subtitle?: ComponentChildren;
  /** Whose colour the card has. */
  readonly regime?: string;
  /** Beside the title. */
  readonly aside?: ComponentChildren;
  /** Where in the program it is. */
  readonly places?: ComponentChildren;
  readonly fix?: Fix | undefined;
  /** Assumptions of the gain. */
  readonly notes?: ComponentChildren;
  readonly evidence: readonly Evidence[];
  /** Below the label of a piece of evidence. */
  readonly occurrence?: (item: Evidence) => ComponentChildren;
  /** At the end. */
  readonly children?: ComponentChildren;
}

export function FindingCard({ cause, title, subtitle, regime, aside, places, fix, notes, evidence, occurrence, children }: Props) {
  return (
    <section class="card finding" data-cause={cause} {...(regime === undefined ? {} : { style: { borderInlineStartColor: colourOf(regime) } })}>
      <header>
        <h3>
          {title}
          {subtitle && <small>{subtitle}</small>}
        </h3>
        {aside}
      </header>
      <div class="place-and-code">
        <div>
          {places}
          {fix && <p class="summary"><WithCode text={fix.summary} /></p>}
        </div>
        {fix && (
          <div>
            {(fix.patch || fix.code) && <CodeBlock text={fix.patch ? added(fix.patch) : fix.code} label={`code that fixes “${title}”`} />}
            {fix.patch && (
              <Fold title="As a patch of this program, for patch -p0">
                <CodeBlock text={fix.patch} label={`patch that fixes “${title}”`} />
              </Fold>
            )}
            {fix.command && (
              <p class="confirm">
                <strong>To measure it:</strong> <code>{fix.command}</code>
              </p>
            )}
          </div>
        )}
      </div>
      <Fold title="Evidence, and how to confirm it">
        {fix?.confirm && (
          <p class="confirm">
            <strong>To confirm:</strong> <WithCode text={fix.confirm} />
          </p>
        )}
        {fix?.documentation && <Documentation url={fix.documentation} />}
        {notes}
        {evidence.length > 0 && <EvidenceTable evidence={evidence} occurrence={occurrence} />}
      </Fold>
      {children}
    </section>
  );
}

/** The lines that a patch adds, without their common indentation. */
function added(patch: string): string {
  const lines = patch.split("\n").filter((line) => line.startsWith("+") && !line.startsWith("+++ ")).map((line) => line.slice(1));
  const indent = Math.min(...lines.map((line) => line.search(/\S|$/)));
  return lines.map((line) => line.slice(indent)).join("\n");
}

/** A link to the official documentation of a fix. An address of another kind is not linked: a report is not trusted. */
function Documentation({ url }: { url: string }) {
  if (!/^https:\/\/[a-z0-9.-]+\//.test(url)) return null;
  return (
    <p class="documentation">
      <strong>Documentation:</strong>{" "}
      <a href={url} target="_blank" rel="noopener noreferrer">{url.replace(/^https:\/\//, "")}</a>
    </p>
  );
}

/** What the problem costs, and the gain of its fix. */
export function CostAndGain({ cost, of, speedup: predicted, basis: other }: { cost: number; of: string; speedup: Speedup | undefined; basis?: string | undefined }) {
  const { gain, basis } = speedup(predicted);
  return (
    <dl class="cost-and-gain">
      <div>
        <dt>Costs</dt>
        <dd>
          {share(cost)} <small>{of}</small>
        </dd>
      </div>
      <div>
        <dt>Speedup</dt>
        <dd>
          {gain} <small>{other ?? basis}</small>
        </dd>
      </div>
    </dl>
  );
}

function EvidenceTable({ evidence, occurrence }: { evidence: readonly Evidence[]; occurrence: Props["occurrence"] }) {
  const isCompared = evidence.some((item) => item.compared_with !== "");
  return (
    <table class="evidence" aria-label="Evidence">
      <thead>
        <tr>
          <th scope="col">Evidence</th>
          <th scope="col" class="figure">Measured</th>
          {isCompared && <th scope="col">Compared with</th>}
        </tr>
      </thead>
      <tbody>
        {evidence.map((item, index) => (
          <tr key={index}>
            <th scope="row">
              {item.label}
              {occurrence?.(item)}
            </th>
            {item.unit === "text" && !item.compared_with ? (
              <td class="text" colSpan={isCompared ? 2 : 1}>
                {valueOf(item)}
              </td>
            ) : (
              <>
                <td class={item.unit === "text" ? "text" : "figure"}>{valueOf(item)}</td>
                {isCompared && <td class="against">{item.compared_with}</td>}
              </>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
