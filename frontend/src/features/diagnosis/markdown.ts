// A report as Markdown, with the same texts and numbers as on the page.
import type { Finding, MemoryFinding, Report, Window } from "../../shared/report";
import { causeTitle } from "../../shared/text/causes";
import { between, count, duration, elapsed, evidence, share, speedup, spread, times } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { bulletList, codeBlock, escaped, joinParts, tableRow } from "../../shared/text/markdown";
import { fileStem, leadOf, placeName, runName, shownPlaces } from "../../shared/text/names";
import { basis, confidence, noVerdict, severity, status, stepTitle } from "../../shared/text/vocabulary";
import { untrusted } from "./untrusted";
import { accountRows } from "./account_rows";
import { checkedRegimes } from "./checked";
import { detailsMarkdown } from "./details_markdown";
import { memoryFindings } from "./memory_findings";
import { costliest } from "./phase_band";
import { largestFirst } from "./run_parts";

/** `beside` are further parts, before what was not judged. */
export function reportMarkdown(report: Report, beside: readonly string[] = []): string {
  const parts = [heading(report), about(report), escaped(report.verdict?.situation ?? ""), ...reasons(report), escaped(report.window?.correction ?? ""), escaped(report.unprofiled?.sentence ?? ""), overTime(report), account(report), wholeRun(report), ...findingSections(report), plan(report), ...detailsMarkdown(report), ...beside, openQuestions(report)];
  return joinParts(parts);
}

function heading({ verdict, health: state, evidence_source }: Report): string {
  if (!verdict) return `## ${escaped(noVerdict(state?.status ?? "", evidence_source))}`;
  const alert = verdict.memory_alert;
  const beside = alert?.leads ? [`About the time: ${escaped([verdict.action, verdict.headline].filter(Boolean).join(". "))}`] : [verdict.action && escaped([verdict.action_cause, verdict.headline].filter(Boolean).join(" ")), alert ? `About the memory: ${escaped(alert.headline)}` : ""];
  return joinParts([`## ${escaped(leadOf(verdict))}`, ...beside]).trimEnd();
}

function about({ run, source, verdict, window, device }: Report): string {
  const facts = [
    `${escaped(runName(run))} › ${escaped(fileStem(source))}`,
    verdict && `${severity(verdict).text}, ${confidence(verdict.confidence).toLowerCase()}`,
    device && escaped(device.name || device.kind),
    window && steps(window),
  ];
  return facts.filter(Boolean).join(" · ");
}

function steps({ steps: many, basis: stepBasis, step_ns, begin_ns, end_ns }: Window): string {
  if (stepBasis === "whole" || !step_ns) return `${duration(end_ns - begin_ns)} (${basis(stepBasis)})`;
  if (many === 1) return `1 step (${basis(stepBasis)}), ${stepTitle({ steps: many, basis: stepBasis }).toLowerCase()}: ${duration(step_ns.mean)}`;
  return `${count(many)} steps (${basis(stepBasis)}), ${stepTitle({ steps: many, basis: stepBasis }).toLowerCase()}: ${duration(step_ns.mean)}, ${spread(step_ns)}`;
}

function reasons({ health: state }: Report): readonly string[] {
  return (state?.reasons ?? []).map(({ detail, fix }) => `> ${escaped(detail)}${fix ? `\n\nTo fix it:\n\n${codeBlock(fix)}` : ""}`);
}

function account({ account: rows, window }: Report): string {
  if (rows.length === 0) return "";
  const head = [tableRow("Regime", "Share", window?.basis === "whole" ? "Time" : "Per step"), tableRow("---", "---:", "---:")];
  return [...head, ...accountRows(rows).timed.map(({ title: name, share: part, ns_per_step }) => tableRow(escaped(name), share(part), duration(ns_per_step)))].join("\n");
}

function wholeRun({ run_time: run }: Report): string {
  const parts = largestFirst(run?.parts ?? []);
  if (!run || parts.length === 0) return "";
  const head = [tableRow(`The whole run, ${duration(run.elapsed_ns)}`, "Share", "Time"), tableRow("---", "---:", "---:")];
  return [...head, ...parts.map(({ title: name, share: part, ns }) => tableRow(escaped(name), share(part), duration(ns)))].join("\n");
}

const MAX_LISTED = 8;

function overTime({ phases: phases }: Report): string {
  const first = phases[0];
  if (!first || phases.length < 2) return "";
  const head = [tableRow("From", "For", "Regime", "Share", "Severity"), tableRow("---:", "---:", "---", "---:", "---")];
  const rows = costliest(phases, MAX_LISTED).map((phase) =>
    tableRow(elapsed(phase.begin_ns - first.begin_ns), duration(phase.end_ns - phase.begin_ns), escaped(phase.title), share(phase.share), severity(phase).text),
  );
  return [...head, ...rows].join("\n");
}

function findingSections(report: Report): readonly string[] {
  const [aboutTime, aboutMemory] = [report.findings.map(findingSection), memoryFindings(report).map(memorySection)];
  return report.verdict?.memory_alert?.leads ? [...aboutMemory, ...aboutTime] : [...aboutTime, ...aboutMemory];
}

function memorySection({ title: name, severity: word, evidence: items, fix }: MemoryFinding): string {
  const parts = [
    `### ${escaped(name)}`,
    `${severity({ severity: word, regime: "" }).text}, about the memory.`,
    fix?.summary && escaped(fix.summary),
    fix?.code && codeBlock(fix.code),
    fix?.confirm && `To confirm: ${escaped(fix.confirm)}`,
    fix?.documentation && `Documentation: <${escaped(fix.documentation)}>`,
    bulletList(items.map((item) => `${escaped(item.label)}: ${escaped(evidence(item))}`)),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function findingSection(finding: Finding): string {
  const { gain, basis: gainBasis } = speedup(finding.speedup);
  const facts = finding.evidence.map((item) => `${escaped(item.label)}: ${escaped(evidence(item))}${item.compared_with ? ` (${escaped(item.compared_with)})` : ""}`);
  const parts = [
    `### ${escaped(finding.title || title(finding.cause))}`,
    `Costs ${share(finding.cost_share)} of the analysed time. Speedup: ${gain} (${gainBasis}).`,
    bulletList(shownPlaces(finding.where).map((place) => `${escaped(placeName(place))}: ${share(place.share)} of this cost${place.chain.length > 1 ? ` (${escaped(place.chain.join(" › "))})` : ""}`)),
    finding.fix?.summary && escaped(finding.fix.summary),
    finding.fix?.code && codeBlock(finding.fix.code),
    finding.fix?.confirm && `To confirm: ${escaped(finding.fix.confirm)}`,
    finding.fix?.trial && `To measure it: \`tb-bottleneck try ${escaped(finding.fix.trial)} -- python train.py\``,
    finding.fix?.documentation && `Documentation: <${escaped(finding.fix.documentation)}>`,
    finding.speedup?.because && escaped(finding.speedup.because),
    bulletList(facts),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function plan(report: Report): string {
  if (report.plan.length === 0) return "";
  const head = [tableRow("Change, on top of those above", "Step time after it", "Total speedup"), tableRow("---", "---:", "---:")];
  return [
    "### Order of changes",
    [...head, ...report.plan.map((step) => tableRow(escaped(step.title || causeTitle(step.cause, report)), duration(step.step_ns_after), `${times(step.speedup_total)} ${between(step.low, step.high)}`.trim()))].join("\n"),
  ].join("\n\n");
}

/** What could not be judged, and where the evidence sources disagree. Without it, silence would read as a clear verdict. */
function openQuestions(report: Report): string {
  const { broken_parts: broken, disagreements } = report;
  const unjudged = checkedRegimes(report).filter((regime) => regime.status === "abstains" || regime.status === "broken");
  const lines = [
    ...unjudged.map((regime) => `${status(regime.status).text}: ${escaped(regime.title || regime.regime)}. ${escaped(regime.because)}`.trim()),
    ...broken.map(({ because }) => escaped(because)),
    ...untrusted(report).map(escaped),
    ...disagreements.map(({ sentence }) => escaped(sentence)),
  ];
  return lines.length > 0 ? `### Not judged\n\n${bulletList(lines)}` : "";
}
