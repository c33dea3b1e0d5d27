// A comparison as Markdown, for an issue or a chat: the same words and numbers as on the page.
import { change, duration, factor, share, signedShare } from "../../shared/text/format";
import type { Comparison, Expected, Report } from "../../shared/report";
import { escaped } from "../diagnosis/markdown";
import { promisedRows } from "./expected_rows";
import { waterfall } from "../../shared/widgets/waterfall";
import { causeTitle, outcome, promiseBasis, testBeside } from "./summary";

const row = (...cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join("\n");

/** `before` and `after` are the reports of A and B, for what they call their causes. */
export function comparisonMarkdown(told: Comparison, before: Report | undefined, after: Report | undefined): string {
  const parts = [
    `## ${escaped(told.headline)}`,
    `A: ${escaped(told.a)}  \nB: ${escaped(told.b)}`,
    ...(told.comparable ? [noise(told), bars(told), told.expected ? promise(told, told.expected) : "", causes(told, before, after), context(told)] : []),
    told.notes.length > 0 ? `### To keep in mind\n\n${listed(told.notes.map(escaped))}` : "",
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`.replaceAll("\u00a0", " ");
}

function noise(told: Comparison): string {
  const spread = told.noise > 0 ? ` (± ${share(told.noise)})` : "";
  return `**${escaped(outcome(told).text)}**${spread}. ${escaped(testBeside(told))}`.trim();
}

function bars({ by_regime, a_ns, b_ns, per }: Comparison): string {
  const rows = waterfall(by_regime, a_ns, b_ns).bars.map(({ row: one }) =>
    row(escaped(one.title), duration(one.a_ns), duration(one.b_ns), change(one.delta_ns)),
  );
  const head = [row(`Time per ${escaped(per)}`, "A", "B", "Change"), row("---", "---:", "---:", "---:")];
  return [...head, ...rows, row("**Whole**", duration(a_ns), duration(b_ns), change(b_ns - a_ns))].join("\n");
}

function promise(told: Comparison, expected: Expected): string {
  const rows = promisedRows(told, expected).map((one) =>
    row(escaped(one.row.title), factor(one.ratio), one.measured > 0 ? factor(one.measured) : "", duration(one.expected_ns), duration(one.row.b_ns), escaped(one.because)),
  );
  const head = [row("Regime", "Promised", "Got", "Expected", "Measured", "Because"), row("---", "---:", "---:", "---:", "---:", "---")];
  const parts = [
    "### What B’s device promises for the work of A",
    `Expected ${factor(expected.speedup)} (${factor(expected.low)} to ${factor(expected.high)}), measured ${factor(told.speedup)}; the kernels alone ${factor(expected.kernels_speedup)}. By ${promiseBasis(expected.basis)}.`,
    [...head, ...rows].join("\n"),
    expected.shortfall.length > 0 ? `What lies between, of B’s time:\n\n${listed(expected.shortfall.map((part) => `${signedShare(part.share)} ${escaped(causeTitle(part.cause))}: ${escaped(part.because)}`))}` : "",
  ];
  return parts.filter(Boolean).join("\n\n");
}

function causes({ causes: changed }: Comparison, before: Report | undefined, after: Report | undefined): string {
  const gained = (changed?.gained ?? []).map((cause) => `B has and A has not: ${escaped(causeTitle(cause, after))}`);
  const lost = (changed?.lost ?? []).map((cause) => `A has and B has not: ${escaped(causeTitle(cause, before))}`);
  return gained.length + lost.length > 0 ? `### Causes\n\n${listed([...gained, ...lost])}` : "";
}

function context({ context: rows }: Comparison): string {
  if (rows.length === 0) return "";
  const head = [row("What differs", "A", "B"), row("---", "---", "---")];
  return ["### Around them", [...head, ...rows.map((one) => row(escaped(one.title || one.key), escaped(one.a), escaped(one.b)))].join("\n")].join("\n\n");
}
