// A series as Markdown, with the same texts and numbers as on the page.
import type { RunPoint, RunSeries } from "../../shared/report";
import { duration } from "../../shared/text/format";
import { bulletList, escaped, joinParts, tableRow } from "../../shared/text/markdown";
import { regimeTitle } from "./areas";
import { kneeOf, pointHeading, range, regressionPointOf, relativeSpeed, seriesTitle, SPEED_HEADING } from "./summary";

export function seriesMarkdown(series: RunSeries): string {
  const parts = [
    `## ${escaped(series.headline)}`,
    series.points.length > 0 ? `${escaped(seriesTitle(series))}:\n\n${table(series)}` : "",
    series.knee ? `Knee at ${escaped(series.knee.value)}: ${escaped(series.knee.because)}.` : "",
    series.notes.length > 0 ? `### Notes\n\n${bulletList(series.notes.map(escaped))}` : "",
  ];
  return joinParts(parts);
}

function table(series: RunSeries): string {
  const isUnrelated = series.kind === "apart";
  const head = [pointHeading(series), `Time per ${series.per}`, "Range", ...(isUnrelated ? [] : [SPEED_HEADING]), "Bottleneck"];
  const [knee, regression] = [kneeOf(series), regressionPointOf(series)];
  const rows = series.points.map((point, index) => {
    const mark = point === knee ? " (knee)" : point === regression ? " (slower since here)" : "";
    return tableRow(`${escaped(nameOf(series, point))}${mark}`, duration(point.ns), range(point), ...(isUnrelated ? [] : [relativeSpeed(point, index)]), escaped(regimeTitle(series.points, point.regime)));
  });
  return [tableRow(...head.map(escaped)), tableRow("---", "---:", "---:", ...(isUnrelated ? [] : ["---:"]), "---"), ...rows].join("\n");
}

/** A setting with its runs, or the run. */
function nameOf({ kind }: RunSeries, { value, run, runs }: RunPoint): string {
  return kind === "sweep" || kind === "settings" ? `${value}: ${(runs.length > 0 ? runs : [run]).join(", ")}` : run;
}
