// The account of each step: a column per step, each cut into who owned its time.
import { useRef, useState } from "preact/hooks";
import { colourOf, isLost } from "../../shared/colours";
import { duration, share } from "../../shared/text/format";
import { movedAlong } from "../../shared/widgets/list_navigation";
import type { RegimeColumn, StepColumns } from "../../shared/report";
import type { Focus } from "../../app/state";
import { Swatch } from "../../shared/widgets/swatch";

interface Props {
  readonly columns: StepColumns;
  readonly look: (focus: Focus) => void;
}

export function StepAccount({ columns, look }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const [pointed, point] = useState<number>();
  // Where the keyboard is: there may be hundreds of columns, and they are one stop for Tab.
  const [last, reach] = useState(0);
  const reached = Math.min(last, columns.steps.length - 1);
  const totals = columns.steps.map((_, step) => columns.regimes.reduce((sum, regime) => sum + regime.ns[step]!, 0));
  const longest = Math.max(...totals, 1);
  const regimes = [...columns.regimes].sort((a, b) => total(b) - total(a));
  const open = (step: number) =>
    look({ begin: columns.begin_ns[step]!, end: columns.end_ns[step]!, label: nameOf(columns, step) });
  const walk = (event: KeyboardEvent) => {
    const target = movedAlong(event.key, reached, totals.length);
    if (target === undefined) return;
    root.current?.querySelectorAll<HTMLElement>(".column")[target]?.focus();
    event.preventDefault();
  };
  return (
    <section class="step-account">
      <h2>Where each step’s time goes, step by step</h2>
      <div class="columns-chart" role="group" aria-label="Steps, walked with the arrow keys" ref={root} onPointerLeave={() => point(undefined)} onKeyDown={walk}>
        {totals.map((time, step) => (
          <button
            key={step}
            type="button"
            class="column"
            tabIndex={step === reached ? 0 : -1}
            aria-label={`${nameOf(columns, step)}, ${duration(time)}: ${spoken(regimes, step, time)}. Show it on the timeline`}
            onClick={() => open(step)}
            onPointerEnter={() => point(step)}
            onFocus={() => (reach(step), point(step))}
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
      <p class="reading">
        {pointed === undefined ? (
          <span class="muted">
            Longest {duration(longest)}. Hatched: time in which the device is kept from working.
            <span class="on-screen"> Click a step to see it on the timeline.</span>
          </span>
        ) : (
          <>
            <b>{nameOf(columns, pointed)}</b> {duration(totals[pointed]!)}: {spoken(regimes, pointed, totals[pointed]!)}
          </>
        )}
      </p>
      <ul class="legend">
        {regimes.map(({ regime, title }) => (
          <li key={regime}>
            <Swatch regime={regime} />
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
