// The report of a job as Markdown, for issues and chats.
import type { JobAnswer } from "../../shared/report";
import { count, duration, evidence, share, speedup } from "../../shared/text/format";
import { bulletList, codeBlock, escaped, joinParts, tableRow } from "../../shared/text/markdown";
import { knownFigures, unknownText } from "../../shared/text/efficiency";
import { leadOf } from "../../shared/text/names";
import { kindOf, placeOf } from "./words";

export function jobMarkdown({ job, because }: JobAnswer): string {
  if (!job) return joinParts([escaped(because)]);
  const { verdict, culprits, groups, health, missing_ranks: missing } = job;
  const about = [`${count(job.world_size)} ranks`, missing.length > 0 && `${count(missing.length)} missing`, job.step_ns > 0 && `step ${duration(job.step_ns)}`];
  const fixes = culprits.map((culprit) => {
    const { gain, basis } = speedup(culprit.speedup);
    return [
      `### ${escaped(culprit.fix?.action || culprit.title)}`,
      `${escaped(placeOf(culprit, job.ranks.length))}. ${escaped(culprit.title)}. Costs ${share(culprit.cost_share)} of the job’s time. Speedup: ${gain} (${basis}).`,
      escaped(culprit.fix?.summary ?? ""),
      culprit.fix?.code ? codeBlock(culprit.fix.code) : "",
      bulletList(culprit.evidence.map((item) => `${escaped(item.label)}: ${escaped(evidence(item))}`)),
    ].filter(Boolean).join("\n\n");
  });
  const rows = groups.map((group) => tableRow(`${escaped(kindOf(group.kind))}, ${count(group.count)} of ${count(group.ranks.length || job.world_size)} ranks`, share(group.wait_share), share(group.wire_share)));
  return joinParts([
    verdict ? `## ${escaped(leadOf(verdict))}` : "",
    verdict?.action ? escaped(verdict.headline) : "",
    about.filter(Boolean).join(" · "),
    ...(health?.reasons ?? []).map(({ detail }) => `> ${escaped(detail)}`),
    ...(job.efficiency ? [bulletList(knownFigures(job.efficiency).map(({ note, value }) => escaped(`${note.title}: ${value} (${note.basis})`))), escaped(unknownText(job.efficiency))] : []),
    ...fixes,
    rows.length > 0 ? [tableRow("Process groups", "Waiting", "Transfer"), tableRow("---", "---:", "---:"), ...rows].join("\n") : "",
  ]);
}
