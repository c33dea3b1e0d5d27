// A series as Markdown, for an issue or a chat: the same words and numbers as on the page.
import { duration } from "../../shared/text/format";
import type { RunPoint, RunSeries } from "../../shared/report";
import { escaped } from "../diagnosis/markdown";
import { regimeTitle } from "./areas";
import { about, against, AGAINST, heading, kneeOf, range, turnOf } from "./summary";

const row = (...cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

export function seriesMarkdown(told: RunSeries): string {
  const parts = [
    `## ${escaped(told.headline)}`,
    told.points.length > 0 ? `${escaped(about(told))}:\n\n${table(told)}` : "",
    told.knee ? `Knee at ${escaped(told.knee.value)}: ${escaped(told.knee.because)}.` : "",
    told.notes.length > 0 ? `### To keep in mind\n\n${told.notes.map((note) => `- ${escaped(note)}`).join("\n")}` : "",
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`.replaceAll("\u00a0", " ");
}

function table(told: RunSeries): string {
  const apart = told.kind === "apart";
  const head = [heading(told), `Time per ${told.per}`, "Range", ...(apart ? [] : [AGAINST]), "Most at stake"];
  const [knee, turn] = [kneeOf(told), turnOf(told)];
  const rows = told.points.map((point, place) => {
    const mark = point === knee ? " (knee)" : point === turn ? " (slower since here)" : "";
    return row(`${escaped(nameOf(told, point))}${mark}`, duration(point.ns), range(point), ...(apart ? [] : [against(point, place)]), escaped(regimeTitle(told.points, point.regime)));
  });
  return [row(...head.map(escaped)), row("---", "---:", "---:", ...(apart ? [] : ["---:"]), "---"), ...rows].join("\n");
}

/** A setting with the runs that have it, or the run. */
function nameOf({ kind }: RunSeries, { value, run, runs }: RunPoint): string {
  return kind === "sweep" || kind === "settings" ? `${value}: ${(runs.length > 0 ? runs : [run]).join(", ")}` : run;
}
