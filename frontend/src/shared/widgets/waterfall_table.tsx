// Waterfall chart from A's time to B's with a bar per regime. The chart is one column of a table with the numbers.
import { colourOf, isLost } from "../colours";
import type { Comparison } from "../report";
import { change, duration, shortShare } from "../text/format";
import { Swatch } from "./swatch";
import { waterfall, type Bar as BarEnds } from "./waterfall";

const SLIGHT = 0.005; // a smaller change, relative to the longest time, is shown muted
const SLIVER = 0.03; // a shorter bar, relative to the longest, is drawn without gaps

/** The names of the two times. */
export interface TimeNames {
  readonly a: string;
  readonly b: string;
  readonly title: string;
  readonly totals: readonly [string, string];
  readonly inB: string; // within a sentence
}

const A_AND_B: TimeNames = { a: "A", b: "B", title: "From A to B", totals: ["A in total", "B in total"], inB: "in B" };

interface Props {
  readonly times: Pick<Comparison, "by_regime" | "a_ns" | "b_ns" | "per">;
  readonly names?: TimeNames;
}

export function WaterfallTable({ times: { by_regime, a_ns, b_ns, per }, names = A_AND_B }: Props) {
  const { bars, empty, longest } = waterfall(by_regime, a_ns, b_ns);
  const parts = (of: "a_ns" | "b_ns") => by_regime.map((row) => ({ regime: row.regime, title: row.title, ns: row[of] }));
  return (
    <section class="waterfall">
      <h2>
        {names.title}, time per {per}
      </h2>
      <table aria-label={`${names.title}, by regime`}>
        <thead>
          <tr>
            <th scope="col">Kind of time</th>
            <th scope="col">
              <span class="key">
                <span class="sample more" /> more {names.inB} <span class="sample less" /> less {names.inB}
              </span>
            </th>
            <th scope="col" class="figure">{names.a}</th>
            <th scope="col" class="figure">{names.b}</th>
            <th scope="col" class="figure">Change</th>
          </tr>
        </thead>
        <tbody>
          <tr class="whole">
            <th scope="row">{names.totals[0]}</th>
            <td class="drawn">
              <StackedBar parts={parts("a_ns")} longest={longest} />
              <span class="connector" style={{ insetInlineStart: at(a_ns, longest), top: "50%" }} />
            </td>
            <td class="figure a">{duration(a_ns)}</td>
            <td class="figure b" />
            <td class="figure change" />
          </tr>
          {bars.map((bar) => (
            <tr key={bar.row.regime} class={Math.abs(bar.row.delta_ns) < SLIGHT * longest ? "slight" : undefined}>
              <th scope="row">
                <Swatch regime={bar.row.regime} />
                {bar.row.title || bar.row.regime}
              </th>
              <td class="drawn">
                <Bar bar={bar} longest={longest} />
              </td>
              <td class="figure a">{duration(bar.row.a_ns)}</td>
              <td class="figure b">{duration(bar.row.b_ns)}</td>
              <td class="figure change">{change(bar.row.delta_ns)}</td>
            </tr>
          ))}
          <tr class="whole">
            <th scope="row">{names.totals[1]}</th>
            <td class="drawn">
              <span class="connector" style={{ insetInlineStart: at(b_ns, longest), bottom: "50%" }} />
              <StackedBar parts={parts("b_ns")} longest={longest} />
            </td>
            <td class="figure a" />
            <td class="figure b">{duration(b_ns)}</td>
            <td class="figure change">{change(b_ns - a_ns)}</td>
          </tr>
        </tbody>
      </table>
      {empty.length > 0 && <p class="muted footnote">No time: {empty.map(({ title, regime }) => title || regime).join(", ")}.</p>}
    </section>
  );
}

const at = (ns: number, longest: number): string => `calc(100% * ${Math.max(0, ns) / longest})`;

/** An increase is filled, a decrease is an outline. Lines connect the bar to the rows above and below. */
function Bar({ bar: { row, before, after }, longest }: { bar: BarEnds; longest: number }) {
  const increased = after > before;
  const pattern = increased && isLost(row.regime) ? "hatched" : "";
  return (
    <>
      <span class="connector" style={{ insetInlineStart: at(before, longest), bottom: "50%" }} />
      <span class="connector" style={{ insetInlineStart: at(after, longest), top: "50%" }} />
      {after !== before && (
        <span
          class={`delta ${increased ? "more" : "less"} ${pattern}`}
          style={{
            insetInlineStart: at(Math.min(before, after), longest),
            width: at(Math.abs(after - before), longest),
            borderColor: colourOf(row.regime),
            ...(increased ? { backgroundColor: colourOf(row.regime) } : {}),
          }}
        />
      )}
    </>
  );
}

interface StackProps {
  readonly parts: readonly { readonly regime: string; readonly title: string; readonly ns: number }[];
  readonly longest: number;
}

/** A time as a bar of its regimes, to the scale of the longest one. */
export function StackedBar({ parts, longest }: StackProps) {
  const total = parts.reduce((sum, { ns }) => sum + ns, 0);
  const timed = parts.filter(({ ns }) => ns > 0);
  return (
    <span class={total < SLIVER * longest ? "stacked sliver" : "stacked"} style={{ width: at(total, longest) }}>
      {timed.map(({ regime, title, ns }) => (
        <span
          key={regime}
          class={isLost(regime) ? "hatched" : undefined}
          title={`${title}: ${duration(ns)}, ${shortShare(ns / total)}`}
          style={{ flexGrow: ns / total, backgroundColor: colourOf(regime) }}
        />
      ))}
    </span>
  );
}
