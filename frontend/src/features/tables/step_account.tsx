// The account of each step: a stacked column per step.
import { useRef, useState } from "preact/hooks";
import { colourOf, isLost } from "../../shared/colours";
import type { RegimeColumn, StepColumns } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { duration, share } from "../../shared/text/format";
import { nextInTabs } from "../../shared/widgets/list_navigation";
import { Swatch } from "../../shared/widgets/swatch";

interface Props {
  readonly columns: StepColumns;
  readonly showFocus: (focus: Focus) => void;
}

export function StepAccount({ columns, showFocus }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number>();
  // The column that Tab focuses. There may be hundreds, so the arrow keys move between them.
  const [lastFocused, setLastFocused] = useState(0);
  const focused = Math.min(lastFocused, columns.steps.length - 1);
  const totals = columns.steps.map((_, step) => columns.regimes.reduce((sum, regime) => sum + regime.ns[step]!, 0));
  const longest = Math.max(...totals, 1);
  const regimes = [...columns.regimes].sort((a, b) => total(b) - total(a));
  const open = (step: number) =>
    showFocus({ begin: columns.begin_ns[step]!, end: columns.end_ns[step]!, label: nameOf(columns, step) });
  const onKeyDown = (event: KeyboardEvent) => {
    const target = nextInTabs(event.key, focused, totals.length);
    if (target === undefined) return;
    root.current?.querySelectorAll<HTMLElement>(".column")[target]?.focus();
    event.preventDefault();
  };
  return (
    <section class="step-account">
      <h2>Account of each step</h2>
      <div class="columns-chart" role="group" aria-label="Steps; the arrow keys move between them" ref={root} onPointerLeave={() => setHovered(undefined)} onKeyDown={onKeyDown}>
        {totals.map((time, step) => (
          <button
            key={step}
            type="button"
            class="column"
            tabIndex={step === focused ? 0 : -1}
            aria-label={`${nameOf(columns, step)}, ${duration(time)}: ${shares(regimes, step, time)}. Show it on the timeline`}
            onClick={() => open(step)}
            onPointerEnter={() => setHovered(step)}
            onFocus={() => (setLastFocused(step), setHovered(step))}
            onBlur={() => setHovered(undefined)}
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
        {hovered === undefined ? (
          <span class="muted">
            Longest {duration(longest)}. Hatched: time in which the device does no useful work.
            <span class="on-screen"> Click a step to see it on the timeline.</span>
          </span>
        ) : (
          <>
            <b>{nameOf(columns, hovered)}</b> {duration(totals[hovered]!)}: {shares(regimes, hovered, totals[hovered]!)}
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
  const before = steps.slice(0, step).reduce((sum, merged) => sum + merged, 0);
  return steps[step] === 1 ? `Step ${before + 1}` : `Steps ${before + 1} to ${before + steps[step]!} (mean)`;
}

function shares(regimes: readonly RegimeColumn[], step: number, time: number): string {
  return regimes
    .filter(({ ns }) => ns[step]! > 0)
    .sort((a, b) => b.ns[step]! - a.ns[step]!)
    .slice(0, 4)
    .map(({ title, ns }) => `${title} ${share(ns[step]! / time)}`)
    .join(", ");
}
