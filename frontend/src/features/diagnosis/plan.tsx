// The fixes in the order in which they pay, each on top of those before it: as steps that grow shorter.
import { between, duration, shortShare, times } from "../../shared/text/format";
import { title } from "../../shared/text/names";
import type { Finding, PlanStep } from "../../shared/report";

interface Props {
  readonly plan: readonly PlanStep[];
  readonly findings: readonly Finding[];
  readonly now: number | undefined; // step time today, ns
}

export function Plan({ plan, findings, now }: Props) {
  const first = plan[0];
  const longest = now ?? (first ? first.step_ns_after * first.speedup_total : 0);
  return (
    <section>
      <h2>In which order, and how far each change takes you</h2>
      <ol class="plan">
        <li class="today">
          <span class="change">Today</span>
          <Length part={1} />
          <span class="figure">{duration(longest)}</span>
          <span class="figure" />
        </li>
        {plan.map((step, index) => (
          <li key={`${step.cause} ${index}`}>
            <span class="change">
              <span class="ordinal" aria-hidden="true">
                {index + 1}
              </span>
              <span>
                {nameOf(step, findings)}
                {step.assumes && <small>{step.assumes}</small>}
              </span>
            </span>
            <Length part={longest > 0 ? step.step_ns_after / longest : 0} />
            <span class="figure" title="A step then takes">
              {duration(step.step_ns_after)}
            </span>
            <span class="figure" title="Speedup in all">
              <b>{times(step.speedup_total)}</b>
              <small>{between(step.low, step.high)}</small>
            </span>
          </li>
        ))}
      </ol>
      <p class="muted footnote">Each is simulated on top of those above it, on this recording’s own dependencies.</p>
    </section>
  );
}

function nameOf(step: PlanStep, findings: readonly Finding[]): string {
  return step.title || findings.find(({ cause }) => cause === step.cause)?.title || title(step.cause);
}

function Length({ part }: { part: number }) {
  const shown = Math.min(Math.max(part, 0), 1);
  return (
    <span class="length" role="img" aria-label={`${shortShare(shown)} of today’s step`}>
      <span class="left" style={{ flexGrow: shown }} />
      <span style={{ flexGrow: 1 - shown }} />
    </span>
  );
}
