// A waterfall chart as a Markdown table.
import type { RegimeDelta } from "../report";
import { change, duration } from "../text/format";
import { escaped, tableRow } from "../text/markdown";
import { waterfall } from "./waterfall";

/** `a` and `b` are the totals in ns; `names` are their column headers. */
export function waterfallMarkdown(rows: readonly RegimeDelta[], a: number, b: number, per: string, names: readonly [string, string]): string {
  return [
    tableRow(`Time per ${escaped(per)}`, ...names, "Change"),
    tableRow("---", "---:", "---:", "---:"),
    ...waterfall(rows, a, b).bars.map(({ row }) => tableRow(escaped(row.title), duration(row.a_ns), duration(row.b_ns), change(row.delta_ns))),
    tableRow("**Total**", duration(a), duration(b), change(b - a)),
  ].join("\n");
}
