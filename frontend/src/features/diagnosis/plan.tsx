// The plan: the fixes in the best order, each simulated on top of the previous ones.
import type { Finding, PlanStep } from "../../shared/report";
import { causeTitle } from "../../shared/text/causes";
import { simulated } from "../../shared/text/format";
import { StepBars } from "../../shared/widgets/step_bars";

interface Props {
  readonly plan: readonly PlanStep[];
  readonly findings: readonly Finding[];
}

export function Plan({ plan, findings }: Props) {
  const first = plan[0];
  const longest = first ? first.step_ns_after * first.speedup_total : 0;
  const bars = plan.map((step, index) => ({
    name: `${index + 1}. ${step.title || causeTitle(step.cause, { findings })}`,
    note: step.assumes,
    ns: step.step_ns_after,
    ...simulated(step.speedup_total, step.low, step.high),
  }));
  return (
    <section>
      <h2>Order of changes and total gain</h2>
      <StepBars today="Today, mean step" ns={longest} bars={bars} />
      <p class="muted footnote">Each change is simulated on top of those above it, using the dependencies in this recording.</p>
    </section>
  );
}
