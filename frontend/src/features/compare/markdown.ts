// A comparison as Markdown, with the same texts and numbers as on the page.
import type { Comparison, Expected, Report } from "../../shared/report";
import { causeTitle } from "../../shared/text/causes";
import { duration, factor, share, signedShare } from "../../shared/text/format";
import { bulletList, escaped, joinParts, tableRow } from "../../shared/text/markdown";
import { waterfallMarkdown } from "../../shared/widgets/waterfall_markdown";
import { expectedRows } from "./expected_rows";
import { outcome, predictionBasis, testNote } from "./summary";

/** The reports are used for the titles of causes. */
export function comparisonMarkdown(comparison: Comparison, reportA: Report | undefined, reportB: Report | undefined): string {
  const parts = [
    `## ${escaped(comparison.headline)}`,
    `A: ${escaped(comparison.a)}  \nB: ${escaped(comparison.b)}`,
    ...(comparison.comparable
      ? [
          noise(comparison),
          waterfallMarkdown(comparison.by_regime, comparison.a_ns, comparison.b_ns, comparison.per, ["A", "B"]),
          comparison.expected ? expectedTime(comparison, comparison.expected) : "",
          causes(comparison, reportA, reportB),
          environment(comparison),
        ]
      : []),
    comparison.notes.length > 0 ? `### Notes\n\n${bulletList(comparison.notes.map(escaped))}` : "",
  ];
  return joinParts(parts);
}

function noise(comparison: Comparison): string {
  const width = (comparison.unprofiled ?? comparison).noise;
  const spread = width > 0 ? ` (± ${share(width)})` : "";
  return `**${escaped(outcome(comparison).text)}**${spread}. ${escaped(testNote(comparison))}`.trim();
}

function expectedTime(comparison: Comparison, expected: Expected): string {
  const rows = expectedRows(comparison, expected).map(({ row, ratio, measured, expected_ns, because }) =>
    tableRow(escaped(row.title), factor(ratio), measured > 0 ? factor(measured) : "", duration(expected_ns), duration(row.b_ns), escaped(because)),
  );
  const head = [tableRow("Regime", "Expected speedup", "Measured speedup", "Expected", "Measured", "Because"), tableRow("---", "---:", "---:", "---:", "---:", "---")];
  const parts = [
    "### Expected on B’s device",
    `Expected ${factor(expected.speedup)} (${factor(expected.low)} to ${factor(expected.high)}), measured ${factor(comparison.speedup)}; kernels only ${factor(expected.kernels_speedup)}. Predicted from ${predictionBasis(expected.basis)}.`,
    [...head, ...rows].join("\n"),
    expected.shortfall.length > 0 ? `Shortfall, as a share of B’s time:\n\n${bulletList(expected.shortfall.map((part) => `${signedShare(part.share)} ${escaped(causeTitle(part.cause))}: ${escaped(part.because)}`))}` : "",
  ];
  return parts.filter(Boolean).join("\n\n");
}

function causes({ causes: changed }: Comparison, reportA: Report | undefined, reportB: Report | undefined): string {
  const gained = (changed?.gained ?? []).map((cause) => `Only in B: ${escaped(causeTitle(cause, reportB))}`);
  const lost = (changed?.lost ?? []).map((cause) => `Only in A: ${escaped(causeTitle(cause, reportA))}`);
  return gained.length + lost.length > 0 ? `### Changed causes\n\n${bulletList([...gained, ...lost])}` : "";
}

function environment({ context: rows }: Comparison): string {
  if (rows.length === 0) return "";
  const head = [tableRow("Setting", "A", "B"), tableRow("---", "---", "---")];
  return ["### Environment differences", [...head, ...rows.map(({ key, title, a, b }) => tableRow(escaped(title || key), escaped(a), escaped(b)))].join("\n")].join("\n\n");
}
