// From A's time to B's, a bar for each regime: the chart is a column of the table that says the same in figures.
import { colourOf, isLost } from "../colours";
import { waterfall, type Bar as Placed } from "./waterfall";
import { change, duration, shortShare } from "../text/format";
import type { Comparison } from "../report";
import { Swatch } from "./swatch";

/** A change below this share of the longest is too thin to be drawn to scale, and is not put forward. */
const SLIGHT = 0.005;
const SLIVER = 0.03;

/** What the two times are called. */
interface Sides {
  readonly a: string;
  readonly b: string;
  readonly title: string;
  readonly all: readonly [string, string];
  readonly then: string; // b, in a sentence
}

const A_AND_B: Sides = { a: "A", b: "B", title: "From A to B", all: ["All of A", "All of B"], then: "in B" };

interface Props {
  readonly told: Pick<Comparison, "by_regime" | "a_ns" | "b_ns" | "per">;
  readonly sides?: Sides;
}

export function WaterfallTable({ told: { by_regime, a_ns, b_ns, per }, sides = A_AND_B }: Props) {
  const { bars, empty, longest } = waterfall(by_regime, a_ns, b_ns);
  const side = (of: "a_ns" | "b_ns") => by_regime.map((row) => ({ regime: row.regime, title: row.title, ns: row[of] }));
  return (
    <section class="waterfall">
      <h2>
        {sides.title}, time per {per}
      </h2>
      <table aria-label={`${sides.title}, by regime`}>
        <thead>
          <tr>
            <th scope="col">Regime</th>
            <th scope="col">
              <span class="key">
                <span class="sample more" /> more {sides.then} <span class="sample less" /> less {sides.then}
              </span>
            </th>
            <th scope="col" class="figure">{sides.a}</th>
            <th scope="col" class="figure">{sides.b}</th>
            <th scope="col" class="figure">Change</th>
          </tr>
        </thead>
        <tbody>
          <tr class="whole">
            <th scope="row">{sides.all[0]}</th>
            <td class="drawn">
              <Stack parts={side("a_ns")} longest={longest} />
              <span class="thread" style={{ insetInlineStart: at(a_ns, longest), top: "50%" }} />
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
            <th scope="row">{sides.all[1]}</th>
            <td class="drawn">
              <span class="thread" style={{ insetInlineStart: at(b_ns, longest), bottom: "50%" }} />
              <Stack parts={side("b_ns")} longest={longest} />
            </td>
            <td class="figure a" />
            <td class="figure b">{duration(b_ns)}</td>
            <td class="figure change">{change(b_ns - a_ns)}</td>
          </tr>
        </tbody>
      </table>
      {empty.length > 0 && <p class="muted footnote">No time on either side: {empty.map(({ title, regime }) => title || regime).join(", ")}.</p>}
    </section>
  );
}

const at = (ns: number, longest: number): string => `calc(100% * ${Math.max(0, ns) / longest})`;

/** More is filled, less is but an outline; threads lead from the row above and to the row below. */
function Bar({ bar: { row, before, after }, longest }: { bar: Placed; longest: number }) {
  const more = after > before;
  const pattern = more && isLost(row.regime) ? "hatched" : "";
  return (
    <>
      <span class="thread" style={{ insetInlineStart: at(before, longest), bottom: "50%" }} />
      <span class="thread" style={{ insetInlineStart: at(after, longest), top: "50%" }} />
      {after !== before && (
        <span
          class={`delta ${more ? "more" : "less"} ${pattern}`}
          style={{
            insetInlineStart: at(Math.min(before, after), longest),
            width: at(Math.abs(after - before), longest),
            borderColor: colourOf(row.regime),
            ...(more ? { backgroundColor: colourOf(row.regime) } : {}),
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

/** A time cut into regimes, as long as it is against the longest. */
export function Stack({ parts, longest }: StackProps) {
  const whole = parts.reduce((sum, { ns }) => sum + ns, 0);
  const timed = parts.filter(({ ns }) => ns > 0);
  return (
    <span class={whole < SLIVER * longest ? "stacked sliver" : "stacked"} style={{ width: at(whole, longest) }}>
      {timed.map(({ regime, title, ns }) => (
        <span
          key={regime}
          class={isLost(regime) ? "hatched" : undefined}
          title={`${title}: ${duration(ns)}, ${shortShare(ns / whole)}`}
          style={{ flexGrow: ns / whole, backgroundColor: colourOf(regime) }}
        />
      ))}
    </span>
  );
}
