// Step times after changes as bars, below the step time of today.
import type { ComponentChildren } from "preact";
import { addStyle } from "../page/style_sheet";
import { duration, shortShare } from "../text/format";
import sheet from "./step_bars.css";

addStyle(sheet);

export interface StepBar {
  readonly name: ComponentChildren;
  readonly note?: string;
  readonly ns: number; // the step time after the change
  readonly speedup: string;
  readonly range: string; // of the speedup; "" if it is not known
}

interface Props {
  readonly today: string;
  readonly ns: number; // the step time of today
  readonly bars: readonly StepBar[];
}

export function StepBars({ today, ns, bars }: Props) {
  return (
    <ol class="plan">
      <li class="today">
        <span class="change">{today}</span>
        <Length share={1} />
        <span class="figure">{duration(ns)}</span>
        <span class="figure" />
      </li>
      {bars.map(({ name, note, ns: after, speedup, range }, index) => (
        <li key={index}>
          <span class="change">
            <span>
              {name}
              {note && <small>{note}</small>}
            </span>
          </span>
          <Length share={ns > 0 ? after / ns : 0} />
          <span class="figure" title="Step time after this change">
            {duration(after)}
          </span>
          <span class="figure" title="Speedup">
            <b>{speedup}</b>
            <small>{range}</small>
          </span>
        </li>
      ))}
    </ol>
  );
}

function Length({ share }: { share: number }) {
  const shown = Math.min(Math.max(share, 0), 1);
  return (
    <span class="length" role="img" aria-label={`${shortShare(shown)} of today’s step time`}>
      <span class="left" style={{ flexGrow: shown }} />
      <span style={{ flexGrow: 1 - shown }} />
    </span>
  );
}
