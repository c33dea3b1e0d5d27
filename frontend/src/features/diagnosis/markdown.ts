// A report as Markdown, for an issue or a chat: the same words and numbers as on the page. Names are kept from being markup.
import { folded } from "./account_rows";
import { between, count, duration, elapsed, evidence, share, speedup, spread, times } from "../../shared/text/format";
import { fileStem, runName, title } from "../../shared/text/names";
import type { Finding, Report, Window } from "../../shared/report";
import { listed } from "./phase_band";
import { basis, confidence, noVerdict, severity, status } from "../../shared/text/vocabulary";

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
  const parts = [heading(report), about(report), ...reasons(report), escaped(report.unprofiled?.sentence ?? ""), overTime(report), account(report), ...report.findings.map(finding), plan(report), untold(report)];
  return plain(`${parts.filter(Boolean).join("\n\n")}\n`);
}

function heading({ verdict, health: state }: Report): string {
  return `## ${escaped(verdict?.headline ?? noVerdict(state?.status ?? ""))}`;
}

function about({ run, source, verdict, window, device }: Report): string {
  const said = [
    `${escaped(runName(run))} › ${escaped(fileStem(source))}`,
    verdict && `${severity(verdict.severity).text}, ${confidence(verdict.confidence).toLowerCase()}`,
    device && escaped(device.name || device.kind),
    window && steps(window),
  ];
  return said.filter(Boolean).join(" · ");
}

function steps({ steps: many, basis: told, step_ns, begin_ns, end_ns }: Window): string {
  if (told === "whole" || !step_ns) return `${duration(end_ns - begin_ns)} (${basis(told)})`;
  if (many === 1) return `1 step of ${duration(step_ns.median)} (${basis(told)})`;
  return `${count(many)} steps (${basis(told)}), median ${duration(step_ns.median)}, ${spread(step_ns)}`;
}

function reasons({ health: state }: Report): readonly string[] {
  return (state?.reasons ?? []).map(({ detail, fix }) => `> ${escaped(detail)}${fix ? `\n\nTo mend it:\n\n${fenced(fix)}` : ""}`);
}

function account({ account: rows, window }: Report): string {
  if (rows.length === 0) return "";
  const head = [row("Regime", "Share", window?.basis === "whole" ? "Time" : "Per step"), row("---", "---:", "---:")];
  return [...head, ...folded(rows).shown.map((one) => row(escaped(one.title), share(one.share), duration(one.ns_per_step)))].join("\n");
}

const LISTED = 8;

function overTime({ phases: stretches }: Report): string {
  const first = stretches[0];
  if (!first || stretches.length < 2) return "";
  const head = [row("From", "For", "Regime", "Share", "Severity"), row("---:", "---:", "---", "---:", "---")];
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
    `Costs ${share(found.cost_share)} of the time judged. Speedup: ${gain} (${rests}).`,
    found.fix?.summary && escaped(found.fix.summary),
    found.fix?.code && fenced(found.fix.code),
    found.fix?.confirm && `To confirm: ${escaped(found.fix.confirm)}`,
    found.speedup?.because && escaped(found.speedup.because),
    facts.join("\n"),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function plan({ plan: changes, findings }: Report): string {
  if (changes.length === 0) return "";
  const named = (cause: string) => findings.find((one) => one.cause === cause)?.title ?? title(cause);
  const head = [row("Change, on top of those above", "Step then takes", "Speedup in all"), row("---", "---:", "---:")];
  return [
    "### In which order",
    [...head, ...changes.map((step) => row(escaped(step.title || named(step.cause)), duration(step.step_ns_after), `${times(step.speedup_total)} ${between(step.low, step.high)}`.trim()))].join("\n"),
  ].join("\n\n");
}

/** What the recording does not tell, and where its two witnesses disagree: who reads on must not take silence for health. */
function untold({ regimes, disagreements }: Report): string {
  const silent = regimes.filter((one) => one.status === "abstains" || one.status === "broken");
  const told = [
    ...silent.map((one) => `- ${status(one.status).text}: ${escaped(one.title || one.regime)}. ${escaped(one.because)}`.trim()),
    ...disagreements.map(({ sentence }) => `- ${escaped(sentence)}`),
  ];
  return told.length > 0 ? `### What this leaves open\n\n${told.join("\n")}` : "";
}
