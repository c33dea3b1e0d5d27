// The account of each step: a column per step, each cut into who owned its time.
import { useState } from "preact/hooks";
import { colourOf, isLost } from "../colours";
import { duration, share } from "../format";
import type { RegimeColumn, StepColumns } from "../report";
import type { Focus } from "../state";

interface Props {
  readonly columns: StepColumns;
  readonly look: (focus: Focus) => void;
}

export function StepAccount({ columns, look }: Props) {
  const [pointed, point] = useState<number>();
  const totals = columns.steps.map((_, step) => columns.regimes.reduce((sum, regime) => sum + regime.ns[step]!, 0));
  const longest = Math.max(...totals, 1);
  const regimes = [...columns.regimes].sort((a, b) => total(b) - total(a));
  const open = (step: number) =>
    look({ begin: columns.begin_ns[step]!, end: columns.end_ns[step]!, label: nameOf(columns, step) });
  return (
    <section class="step-account">
      <h2>Where each step’s time goes, step by step</h2>
      <div class="columns-chart" onPointerLeave={() => point(undefined)}>
        {totals.map((time, step) => (
          <button
            key={step}
            type="button"
            class="column"
            aria-label={`${nameOf(columns, step)}, ${duration(time)}: ${spoken(regimes, step, time)}. Show it on the timeline`}
            onClick={() => open(step)}
            onPointerEnter={() => point(step)}
            onFocus={() => point(step)}
            onBlur={() => point(undefined)}
          >
            <span style={{ flexGrow: longest - time }} />
            <span class="stack" style={{ flexGrow: time }}>
              {regimes.map(({ regime, ns }) => (
                <span
                  key={regime}
                  class={isLost(regime) ? "hatched" : undefined}
                  style={{ flexGrow: ns[step]!, backgroundColor: colourOf(regime) }}
                />
              ))}
            </span>
          </button>
        ))}
      </div>
      <p class="reading" role="status">
        {pointed === undefined ? (
          <span class="muted">Longest {duration(longest)}. Click a step to see it on the timeline; time in which the device is kept from working is hatched.</span>
        ) : (
          <>
            <b>{nameOf(columns, pointed)}</b> {duration(totals[pointed]!)}: {spoken(regimes, pointed, totals[pointed]!)}
          </>
        )}
      </p>
      <ul class="legend">
        {regimes.map(({ regime, title }) => (
          <li key={regime}>
            <span class={isLost(regime) ? "swatch inline hatched" : "swatch inline"} style={{ backgroundColor: colourOf(regime) }} />
            {title}
          </li>
        ))}
      </ul>
    </section>
  );
}

const total = ({ ns }: RegimeColumn): number => ns.reduce((sum, time) => sum + time, 0);

function nameOf({ steps }: StepColumns, step: number): string {
  const before = steps.slice(0, step).reduce((sum, many) => sum + many, 0);
  return steps[step] === 1 ? `Step ${before + 1}` : `Steps ${before + 1} to ${before + steps[step]!} (mean)`;
}

function spoken(regimes: readonly RegimeColumn[], step: number, time: number): string {
  return regimes
    .filter(({ ns }) => ns[step]! > 0)
    .sort((a, b) => b.ns[step]! - a.ns[step]!)
    .slice(0, 4)
    .map(({ title, ns }) => `${title} ${share(ns[step]! / time)}`)
    .join(", ");
}
