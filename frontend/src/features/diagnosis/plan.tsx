// The plan: the fixes in the best order, each simulated on top of the previous ones.
import type { Finding, PlanStep } from "../../shared/report";
import { causeTitle } from "../../shared/text/causes";
import { between, duration, shortShare, times } from "../../shared/text/format";

interface Props {
  readonly plan: readonly PlanStep[];
  readonly findings: readonly Finding[];
}

export function Plan({ plan, findings }: Props) {
  const first = plan[0];
  // The mean step, as in the times of the plan: the median step leaves out what only some steps wait for.
  const longest = first ? first.step_ns_after * first.speedup_total : 0;
  return (
    <section>
      <h2>Order of changes and total gain</h2>
      <ol class="plan">
        <li class="today">
          <span class="change">Today, mean recorded step</span>
          <StepBar share={1} />
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
            <StepBar share={longest > 0 ? step.step_ns_after / longest : 0} />
            <span class="figure" title="Step time after this change">
              {duration(step.step_ns_after)}
            </span>
            <span class="figure" title="Total speedup">
              <b>{times(step.speedup_total)}</b>
              <small>{between(step.low, step.high)}</small>
            </span>
          </li>
        ))}
      </ol>
      <p class="muted footnote">Each change is simulated on top of those above it, using the dependencies in this recording.</p>
    </section>
  );
}

function nameOf(step: PlanStep, findings: readonly Finding[]): string {
  return step.title || causeTitle(step.cause, { findings });
}

function StepBar({ share }: { share: number }) {
  const shown = Math.min(Math.max(share, 0), 1);
  return (
    <span class="length" role="img" aria-label={`${shortShare(shown)} of today’s step time`}>
      <span class="left" style={{ flexGrow: shown }} />
      <span style={{ flexGrow: 1 - shown }} />
    </span>
  );
}
