// Runs on different devices: the expected time of A's work on B's device, the measured time, and the shortfall.
import { colourOf, isLost } from "../../shared/colours";
import type { Comparison, Expected, Report, Shortfall as ShortfallPart } from "../../shared/report";
import { causeTitle } from "../../shared/text/causes";
import { duration, factor, share, signedShare } from "../../shared/text/format";
import { Fact } from "../../shared/widgets/fact";
import { Swatch } from "../../shared/widgets/swatch";
import { StackedBar } from "../../shared/widgets/waterfall_table";
import { expectedRows } from "./expected_rows";
import { predictionBasis } from "./summary";

interface Props {
  readonly comparison: Comparison;
  readonly expected: Expected;
  readonly reportA: Report | undefined;
  readonly reportB: Report;
}

export function ExpectedTime({ comparison, expected, reportA, reportB }: Props) {
  const rows = expectedRows(comparison, expected);
  return (
    <section class="expected">
      <h2>Expected on B’s device</h2>
      <dl class="facts">
        <Fact name="Kernels only" value={factor(expected.kernels_speedup)} note="on B’s device" />
        <Fact name={`Whole ${comparison.per}, expected`} value={factor(expected.speedup)} note={`between ${factor(expected.low)} and ${factor(expected.high)}`} />
        <Fact name={`Whole ${comparison.per}, measured`} value={factor(comparison.speedup)} note={comparison.noise > 0 ? `± ${share(comparison.noise)}` : ""} />
      </dl>
      <ThreeTimes comparison={comparison} expected={expected} />
      <table class="by-regime" aria-label="Expected and measured, by regime">
        <thead>
          <tr>
            <th scope="col">Kind of time</th>
            <th scope="col" class="figure">In A</th>
            <th scope="col" class="figure">Expected speedup</th>
            <th scope="col" class="figure">Measured speedup</th>
            <th scope="col" class="figure">Expected</th>
            <th scope="col" class="figure">Measured</th>
            <th scope="col">Reason</th>
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
              <td class="figure" data-name="expected speedup">{row.a_ns > 0 ? factor(ratio) : ""}</td>
              <td class="figure" data-name="measured speedup">{measured > 0 ? factor(measured) : ""}</td>
              <td class="figure" data-name="expected">{duration(expected_ns)}</td>
              <td class="figure" data-name="measured">{duration(row.b_ns)}</td>
              <td class="against">{because}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Shortfall parts={expected.shortfall} reportA={reportA} reportB={reportB} />
      <details class="assumptions">
        <summary>How it was predicted</summary>
        <p>Predicted from {predictionBasis(expected.basis)}.</p>
        <ul>
          {expected.assumptions.map((assumption, index) => (
            <li key={index}>{assumption}</li>
          ))}
        </ul>
      </details>
    </section>
  );
}

/** The times of A, of B as expected and of B as measured, to the same scale. */
function ThreeTimes({ comparison, expected }: { comparison: Comparison; expected: Expected }) {
  const longest = Math.max(comparison.a_ns, comparison.b_ns, expected.b_ns) || 1;
  const titles = new Map(comparison.by_regime.map(({ regime, title }) => [regime, title || regime]));
  const measured = (of: "a_ns" | "b_ns") => comparison.by_regime.map((row) => ({ regime: row.regime, title: row.title, ns: row[of] }));
  const predicted = expected.by_regime.map(({ regime, expected_ns }) => ({ regime, title: titles.get(regime) ?? regime, ns: expected_ns }));
  const lines = [
    { name: "A, measured", ns: comparison.a_ns, parts: measured("a_ns") },
    { name: "B, expected", ns: expected.b_ns, parts: predicted },
    { name: "B, measured", ns: comparison.b_ns, parts: measured("b_ns") },
  ];
  return (
    <dl class="three-times">
      {lines.map(({ name, ns, parts }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span class="drawn" aria-hidden="true">
              <StackedBar parts={parts} longest={longest} />
            </span>
            <span class="figure">{duration(ns)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What explains the difference between the expected and the measured time of B. */
function Shortfall({ parts, reportA, reportB }: { parts: readonly ShortfallPart[]; reportA: Report | undefined; reportB: Report }) {
  if (parts.length === 0) return null;
  const largest = Math.max(...parts.map((part) => Math.abs(part.share))) || 1;
  return (
    <>
      <h3>Shortfall: expected against measured</h3>
      <ul class="shortfall">
        {parts.map(({ cause, share: part, because, regime }, index) => (
          <li key={index}>
            <span class="figure">{signedShare(part)}</span>
            <span class="drawn" aria-hidden="true">
              <span
                class={`delta ${part > 0 ? "more" : "less"} ${part > 0 && isLost(regime) ? "hatched" : ""}`}
                style={{ width: `calc(100% * ${Math.abs(part) / largest})`, borderColor: colourOf(regime), ...(part > 0 ? { backgroundColor: colourOf(regime) } : {}) }}
              />
            </span>
            <span>
              <b>{causeTitle(cause, reportB, reportA)}</b> <span class="muted">{because}</span>
            </span>
          </li>
        ))}
      </ul>
      <p class="muted footnote">Share of B’s step time. Positive: not covered by the prediction; negative: faster than predicted.</p>
    </>
  );
}
