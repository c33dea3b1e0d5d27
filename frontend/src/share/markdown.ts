// A report as Markdown, for an issue or a chat: the same words and numbers as on the page. Names are kept from being markup.
import { folded } from "../account";
import { duration, elapsed, evidence, runName, share, sourceName, speedup, spread, times, title } from "../format";
import type { Finding, Report } from "../report";
import { listed } from "../stretches";
import { basis, confidence, health, severity } from "../vocabulary";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

/** Text that Markdown leaves as it is. */
export function escaped(text: string): string {
  return text.replace(/[\\`*_{}[\]<>#|~!&]/g, (character) => `\\${character}`).replace(/\s+/g, " ");
}

/** A fence that the code itself does not hold. */
function fenced(code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}python\n${code}\n${fence}`;
}

const row = (...cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

export function markdown(report: Report): string {
  const parts = [heading(report), about(report), ...reasons(report), escaped(report.unprofiled?.sentence ?? ""), overTime(report), account(report), ...report.findings.map(finding), plan(report)];
  return plain(`${parts.filter(Boolean).join("\n\n")}\n`);
}

function heading({ verdict, health: state }: Report): string {
  return `## ${escaped(verdict?.headline ?? health(state?.status ?? "").text)}`;
}

function about({ run, source, verdict, window, device }: Report): string {
  const said = [
    `${escaped(runName(run))} › ${escaped(sourceName(source))}`,
    verdict && `${severity(verdict.severity).text}, ${confidence(verdict.confidence).toLowerCase()}`,
    device && escaped(device.name || device.kind),
    window?.step_ns && `${window.steps} steps (${basis(window.basis)}), median ${duration(window.step_ns.median)}, ${spread(window.step_ns)}`,
  ];
  return said.filter(Boolean).join(" · ");
}

function reasons({ health: state }: Report): readonly string[] {
  return (state?.reasons ?? []).map(({ detail, fix }) => `> ${escaped(detail)}${fix ? `\n\n${fenced(fix)}` : ""}`);
}

function account({ account: rows, window }: Report): string {
  if (rows.length === 0) return "";
  const head = [row("Regime", "Share", window?.basis === "whole" ? "Time" : "Per step"), row("---", "---:", "---:")];
  return [...head, ...folded(rows).shown.map((one) => row(escaped(one.title), share(one.share), duration(one.ns_per_step)))].join("\n");
}

const LISTED = 8;

function overTime({ stretches }: Report): string {
  const first = stretches[0];
  if (!first || stretches.length < 2) return "";
  const head = [row("From", "For", "Regime", "Share", "At stake"), row("---:", "---:", "---", "---:", "---")];
  const rows = listed(stretches, LISTED).map((one) =>
    row(elapsed(one.begin_ns - first.begin_ns), duration(one.end_ns - one.begin_ns), escaped(one.title), share(one.share), severity(one.severity).text),
  );
  return [...head, ...rows].join("\n");
}

function finding(found: Finding): string {
  const { gain, basis: rests } = speedup(found.speedup);
  const facts = found.evidence.map((item) => `- ${escaped(item.label)}: ${escaped(evidence(item))}${item.compared_with ? ` (${escaped(item.compared_with)})` : ""}`);
  const parts = [
    `### ${escaped(found.title || title(found.cause))}`,
    `Costs ${share(found.cost_share)} of the time judged; faster by ${gain} (${rests}).`,
    found.fix?.summary && escaped(found.fix.summary),
    found.fix?.code && fenced(found.fix.code),
    found.fix?.confirm && `To confirm: ${escaped(found.fix.confirm)}`,
    found.speedup?.because && escaped(found.speedup.because),
    facts.join("\n"),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function plan({ plan: steps, findings }: Report): string {
  if (steps.length === 0) return "";
  const named = (cause: string) => findings.find((one) => one.cause === cause)?.title ?? title(cause);
  const head = [row("Change, on top of those above", "Step then takes", "Faster in all"), row("---", "---:", "---:")];
  return [
    "### In which order",
    [...head, ...steps.map((step) => row(escaped(step.title || named(step.cause)), duration(step.step_ns_after), times(step.speedup_total)))].join("\n"),
  ].join("\n\n");
}
