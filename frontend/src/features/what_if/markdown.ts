// A prediction as Markdown, for an issue or a chat: the same words and numbers as on the page.
import { waterfall } from "../../shared/widgets/waterfall";
import { change, duration, factor } from "../../shared/text/format";
import type { WhatIf } from "../../shared/report";
import { escaped } from "../diagnosis/markdown";
import { cost, foretold, interval, intervalOfTime } from "./summary";

const row = (...cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
const listed = (lines: readonly string[]): string => lines.map((line) => `- ${escaped(line)}`).join("\n");

export function whatIfMarkdown(told: WhatIf): string {
  const { fix_first: fixes, assumptions, notes } = told;
  const parts = [
    `## ${escaped(told.headline)}`,
    escaped(told.run),
    ...(told.after ? [figures(told), bars(told, told.after.step_ns)] : []),
    fixes.length > 0 ? `### What to mend first\n\n${listed(fixes.map((fix) => `${fix.title}: ${cost(fix, told.per)}`))}` : "",
    assumptions.length > 0 ? `### What that takes for granted\n\n${listed(assumptions)}` : "",
    notes.length > 0 ? `### To keep in mind\n\n${listed(notes)}` : "",
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`.replaceAll("\u00a0", " ");
}

function figures(told: WhatIf): string {
  const { after } = told;
  if (!after) return "";
  return `**${factor(after.speedup)}**, ${interval(after)}: a ${escaped(told.per)} of ${duration(told.step_ns)} now, of ${duration(after.step_ns)} then (${intervalOfTime(told, after)}). ${foretold(told.basis)}.`;
}

function bars({ by_regime, step_ns, per }: WhatIf, then_ns: number): string {
  const rows = waterfall(by_regime, step_ns, then_ns).bars.map(({ row: one }) =>
    row(escaped(one.title), duration(one.a_ns), duration(one.b_ns), change(one.delta_ns)),
  );
  const head = [row(`Time per ${escaped(per)}`, "Now", "Then", "Change"), row("---", "---:", "---:", "---:")];
  return [...head, ...rows, row("**Whole**", duration(step_ns), duration(then_ns), change(then_ns - step_ns))].join("\n");
}
