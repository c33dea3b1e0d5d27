// What is known about the chosen node: its values, its regimes, the findings that come from it.
import type { Finding, Report } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { count, duration, share } from "../../shared/text/format";
import { Swatch } from "../../shared/widgets/swatch";
import { kindText, METRIC_TITLES, metricText, nodeName } from "./labels";
import { ROOT, type Model, type Node } from "./model";
import { METRICS } from "./options";

interface Props {
  readonly model: Model;
  readonly node: Node;
  readonly report: Report;
  readonly showFocus: (focus: Focus) => void;
  readonly showFinding: (cause: string) => void;
}

export function NodeDetails({ model, node, report, showFocus, showFinding }: Props) {
  const longest = model.longest(node);
  const findings = findingsOf(model, node, report);
  const backward = model.tree.backward_ns[node]! / Math.max(model.tree.steps, 1);
  const time = model.value(node, "time");
  return (
    <section class="card node-details" aria-label="The chosen row" aria-live="polite">
      <h2 class="node-name">{nodeName(model, node)}</h2>
      {kindText(model.kind(node)) && <p class="muted">{kindText(model.kind(node))}</p>}
      {node !== ROOT && model.above(node).length > 0 && (
        <p class="muted path">{model.above(node).map((above) => nodeName(model, above)).join(" › ")}</p>
      )}
      <ul class="legend">
        {model.regimes(node).slice(0, 6).map(({ regime, title, ns }) => (
          <li key={regime}>
            <Swatch regime={regime} />
            {title} {duration(ns)} ({share(time > 0 ? ns / time : 0)})
          </li>
        ))}
      </ul>
      <dl>
        {METRICS.filter((metric) => model.value(node, metric) > 0).map((metric) => (
          <div key={metric}>
            <dt>{METRIC_TITLES[metric]}</dt>
            <dd>{metricText(metric, model.value(node, metric))}</dd>
          </div>
        ))}
        {backward > 0 && (
          <div>
            <dt>Of the time, in the backward pass</dt>
            <dd>
              {duration(backward)} ({share(backward / Math.max(time, 1))})
            </dd>
          </div>
        )}
        {model.calls(node) > 0 && (
          <div>
            <dt>Calls</dt>
            <dd>{count(Number(model.calls(node).toPrecision(3)))}</dd>
          </div>
        )}
      </dl>
      {findings.length > 0 && (
        <p>
          Findings here:{" "}
          {findings.map(({ cause, title }, index) => (
            <>
              {index > 0 && ", "}
              <button key={cause} type="button" class="link" onClick={() => showFinding(cause)}>
                {title}
              </button>
            </>
          ))}
        </p>
      )}
      {longest && (
        <button type="button" onClick={() => showFocus({ ...longest, label: nodeName(model, node).slice(0, 60) })}>
          Show the longest one on the timeline
        </button>
      )}
    </section>
  );
}

const MIN_SHARE = 0.1; // of a finding's regime that belongs to the node

/** The name that the layers of a stack share, as tb_bottleneck/trace/frames/module_names.py writes it. */
const merged = (name: string): string => name.replace(/(?<=[_.])\d+(?=$|\.|\s)/g, "*");

/** The findings that name the node or one around it, or whose regime spends its time there. */
export function findingsOf(model: Model, node: Node, { findings }: Report): readonly Finding[] {
  if (node === ROOT) return [];
  const names = [node, ...model.above(node)].map((each) => model.name(each));
  const regimes = new Map(model.regimes(node).map(({ regime, ns }) => [regime, ns]));
  const whole = new Map(model.regimes(ROOT).map(({ regime, ns }) => [regime, ns]));
  const named = ({ where }: Finding) =>
    where.some(({ file, function: called, module, block }) => names.some((name) => (file && name.startsWith(file) && name.endsWith(`: ${called}`)) || (module && (name === module || merged(name) === module)) || (block && name === block)));
  const spends = ({ regime }: Finding) => (regimes.get(regime) ?? 0) >= MIN_SHARE * (whole.get(regime) ?? Infinity);
  return findings.filter((finding) => (finding.where.length > 0 && ["line", "module", "range"].includes(model.kind(node)) ? named(finding) : spends(finding)));
}
