// A prediction as Markdown, with the same texts and numbers as on the page.
import type { WhatIf } from "../../shared/report";
import { duration, factor } from "../../shared/text/format";
import { bulletList, escaped, joinParts } from "../../shared/text/markdown";
import { waterfallMarkdown } from "../../shared/widgets/waterfall_markdown";
import { cost, predictionBasis, interval, intervalOfTime } from "./summary";

export function whatIfMarkdown(prediction: WhatIf): string {
  const { fix_first: fixes, assumptions, notes } = prediction;
  const parts = [
    `## ${escaped(prediction.headline)}`,
    escaped(prediction.run),
    ...(prediction.after ? [figures(prediction), waterfallMarkdown(prediction.by_regime, prediction.step_ns, prediction.after.step_ns, prediction.per, ["Now", "After"])] : []),
    fixes.length > 0 ? `### What still costs time after the change\n\n${bulletList(fixes.map((fix) => escaped(`${fix.title}: ${cost(fix, prediction.per)}`)))}` : "",
    assumptions.length > 0 ? `### Assumptions\n\n${bulletList(assumptions.map(escaped))}` : "",
    notes.length > 0 ? `### Notes\n\n${bulletList(notes.map(escaped))}` : "",
  ];
  return joinParts(parts);
}

function figures(prediction: WhatIf): string {
  const { after } = prediction;
  if (!after) return "";
  return `**${factor(after.speedup)}**, ${interval(after)}: ${duration(prediction.step_ns)} per ${escaped(prediction.per)} now, ${duration(after.step_ns)} after the change (${intervalOfTime(prediction, after)}). ${predictionBasis(prediction.basis)}.`;
}
