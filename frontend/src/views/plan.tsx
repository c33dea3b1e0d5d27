// The fixes in the order in which they pay, each on top of those before it.
import { duration, times, title } from "../format";
import type { Finding, PlanStep } from "../report";

export function Plan({ plan, findings }: { plan: readonly PlanStep[]; findings: readonly Finding[] }) {
  const named = (cause: string) => findings.find((finding) => finding.cause === cause)?.title || title(cause);
  return (
    <section>
      <h2>In which order</h2>
      <table class="plan">
        <thead>
          <tr>
            <th scope="col">Change, on top of those above</th>
            <th scope="col" class="figure">Step then takes</th>
            <th scope="col" class="figure">Faster in all</th>
          </tr>
        </thead>
        <tbody>
          {plan.map((step, index) => (
            <tr key={`${step.cause} ${index}`}>
              <th scope="row">
                <span class="ordinal">{index + 1}</span> {named(step.cause)}
              </th>
              <td class="figure">{duration(step.step_ns_after)}</td>
              <td class="figure">{times(step.speedup_total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
