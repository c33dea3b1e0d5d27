// The efficiency, and what remains to gain, as Markdown.
import type { Report } from "../../shared/report";
import { evidence } from "../../shared/text/format";
import { bulletList, escaped, section, tableRow } from "../../shared/text/markdown";
import { boundText, figuresOf } from "../../shared/text/efficiency";

export const efficiencyMarkdown = (report: Report): readonly string[] => [remaining(report), figures(report)];

function remaining({ headroom }: Report): string {
  const lines = headroom.map((item) => {
    const bound = boundText(item);
    return escaped(`${item.title}${bound && `: ${bound}`}${item.evidence.length > 0 ? ` (${item.evidence.map((row) => `${row.label}: ${evidence(row)}`).join(", ")})` : ""}`);
  });
  return lines.length > 0 ? section("Where headroom remains", bulletList(lines)) : "";
}

function figures({ efficiency }: Report): string {
  const known = efficiency ? figuresOf(efficiency).filter(({ value }) => value !== undefined) : [];
  if (!efficiency || known.length === 0) return "";
  const mfu = efficiency.notes.find(({ field }) => field === "mfu");
  const rows = known.map(({ note, value }) => tableRow(escaped(note.title), escaped(value!), escaped(note.field === "samples_per_second" ? efficiency.samples_basis : note.basis)));
  const definition = mfu ? escaped(mfu.because ? `MFU is not known: ${mfu.because}.` : mfu.definition) : "";
  return section("Efficiency", [tableRow("Figure", "Value", "Of what"), tableRow("---", "---:", "---"), ...rows].join("\n"), definition);
}
