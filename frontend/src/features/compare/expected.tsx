// Another device: what it promises for A's work, what was measured, and what lies between.
import { colourOf, isLost } from "../../shared/colours";
import { promisedRows } from "./expected_rows";
import { causeTitle, promiseBasis } from "./summary";
import { duration, factor, share, signedShare } from "../../shared/text/format";
import type { Comparison, Expected, Shortfall, Report } from "../../shared/report";
import { Stack } from "../../shared/widgets/waterfall_table";
import { Fact } from "../../shared/widgets/fact";
import { Swatch } from "../../shared/widgets/swatch";

interface Props {
  readonly told: Comparison;
  readonly expected: Expected;
  readonly before: Report | undefined;
  readonly after: Report;
}

export function Promised({ told, expected, before, after }: Props) {
  const rows = promisedRows(told, expected);
  return (
    <section class="promised">
      <h2>What B’s device promises for the work of A</h2>
      <dl class="facts">
        <Fact name="The kernels alone" value={factor(expected.kernels_speedup)} note="on B’s device" />
        <Fact name={`The whole ${told.per}, expected`} value={factor(expected.speedup)} note={`between ${factor(expected.low)} and ${factor(expected.high)}`} />
        <Fact name={`The whole ${told.per}, measured`} value={factor(told.speedup)} note={told.noise > 0 ? `± ${share(told.noise)}` : ""} />
      </dl>
      <Three told={told} expected={expected} />
      <table class="by-regime" aria-label="Promised and measured, by regime">
        <thead>
          <tr>
            <th scope="col">Regime</th>
            <th scope="col" class="figure">In A</th>
            <th scope="col" class="figure">Promised</th>
            <th scope="col" class="figure">Got</th>
            <th scope="col" class="figure">Expected</th>
            <th scope="col" class="figure">Measured</th>
            <th scope="col">Why so much</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ row, expected_ns, ratio, measured, because }) => (
            <tr key={row.regime}>
              <th scope="row">
                <Swatch regime={row.regime} />
                {row.title || row.regime}
              </th>
              <td class="figure" data-name="in A">{duration(row.a_ns)}</td>
              <td class="figure" data-name="promised">{row.a_ns > 0 ? factor(ratio) : ""}</td>
              <td class="figure" data-name="got">{measured > 0 ? factor(measured) : ""}</td>
              <td class="figure" data-name="expected">{duration(expected_ns)}</td>
              <td class="figure" data-name="measured">{duration(row.b_ns)}</td>
              <td class="against">{because}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Between remainder={expected.shortfall} before={before} after={after} />
      <details class="assumed">
        <summary>How that was foretold</summary>
        <p>By {promiseBasis(expected.basis)}.</p>
        <ul>
          {expected.assumptions.map((assumption, index) => (
            <li key={index}>{assumption}</li>
          ))}
        </ul>
      </details>
    </section>
  );
}

/** A, B as expected and B as measured, to one scale. */
function Three({ told, expected }: { told: Comparison; expected: Expected }) {
  const longest = Math.max(told.a_ns, told.b_ns, expected.b_ns) || 1;
  const titles = new Map(told.by_regime.map(({ regime, title }) => [regime, title || regime]));
  const measured = (of: "a_ns" | "b_ns") => told.by_regime.map((row) => ({ regime: row.regime, title: row.title, ns: row[of] }));
  const foretold = expected.by_regime.map(({ regime, expected_ns }) => ({ regime, title: titles.get(regime) ?? regime, ns: expected_ns }));
  const lines = [
    { name: "A, measured", ns: told.a_ns, parts: measured("a_ns") },
    { name: "B, expected", ns: expected.b_ns, parts: foretold },
    { name: "B, measured", ns: told.b_ns, parts: measured("b_ns") },
  ];
  return (
    <dl class="three">
      {lines.map(({ name, ns, parts }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span class="drawn" aria-hidden="true">
              <Stack parts={parts} longest={longest} />
            </span>
            <span class="figure">{duration(ns)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The parts of what was measured beyond the promise, or short of it. */
function Between({ remainder, before, after }: { remainder: readonly Shortfall[]; before: Report | undefined; after: Report }) {
  if (remainder.length === 0) return null;
  const largest = Math.max(...remainder.map((part) => Math.abs(part.share))) || 1;
  return (
    <>
      <h3>What lies between the promise and what was measured</h3>
      <ul class="between">
        {remainder.map(({ cause, share: part, because, regime }, index) => (
          <li key={index}>
            <span class="figure">{signedShare(part)}</span>
            <span class="drawn" aria-hidden="true">
              <span
                class={`delta ${part > 0 ? "more" : "less"} ${part > 0 && isLost(regime) ? "hatched" : ""}`}
                style={{ width: `calc(100% * ${Math.abs(part) / largest})`, borderColor: colourOf(regime), ...(part > 0 ? { backgroundColor: colourOf(regime) } : {}) }}
              />
            </span>
            <span>
              <b>{causeTitle(cause, after, before)}</b> <span class="muted">{because}</span>
            </span>
          </li>
        ))}
      </ul>
      <p class="muted footnote">Of B’s time. A plus is time that the promise does not hold, a minus is time that B spares beyond it.</p>
    </>
  );
}
