// The parts beside the findings as Markdown: input stages, torch.compile, server steps.
import type { Compilation, GraphReplays, InputPipeline, Report, Serving } from "../../shared/report";
import { duration, share } from "../../shared/text/format";
import { bulletList, escaped, section, tableRow } from "../../shared/text/markdown";
import { placeName } from "../../shared/text/names";
import { capital, compiledText, graphText, outsideText, ownersText, partName, PARTS_TITLE, perOf, regionsText, replaysText, shapeOf, shownStages, stagesText, stagesTitle, stepsText, where } from "./details_text";

export function detailsMarkdown(report: Report): readonly string[] {
  const { input, compilation, graphs, serving, step_parts: parts } = report;
  const per = perOf(report);
  return [parts.length > 0 && section(PARTS_TITLE, table(["Function", "Share"], parts.map((part) => [escaped(`${partName(part)}: ${ownersText(part)}`), share(part.share)]))), input && stages(input), compilation && compiled(compilation, per), graphs && replays(graphs, per), serving && serverSteps(serving)].map((part) => part || "");
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [tableRow(...head), tableRow("---", ...head.slice(1).map(() => "---:")), ...rows.map((row) => tableRow(...row))].join("\n");

function stages(input: InputPipeline): string {
  const rows = shownStages(input).map(({ title, share: part, ns_per_batch, place }) => [
    escaped(capital(title) + (place ? ` (${placeName(place)})` : "")),
    share(part),
    ns_per_batch === undefined ? "" : duration(ns_per_batch),
  ]);
  return section(stagesTitle(input), rows.length > 0 ? table(["Stage", "Share", "Per batch"], rows) : "", escaped(stagesText(input)));
}

function compiled({ functions, breaks, outside, compile_ns, regions, missing }: Compilation, per: string): string {
  const lines = [
    ...functions.map((entry) => [`${compiledText(entry)}: ${where(entry)}`, entry.ns !== undefined && duration(entry.ns), entry.failure, ...entry.reasons.map((reason) => `guard: ${reason}`)]),
    ...breaks.map((entry) => [`Graph break: ${where(entry)}`, entry.ns_per_step !== undefined && `${duration(entry.ns_per_step)} ${per}`, entry.reason]),
  ].map((parts) => escaped(parts.filter(Boolean).join("; ")));
  return section("torch.compile", regions === undefined ? "" : escaped(regionsText(regions, compile_ns, per)), bulletList(lines), outside.length > 0 ? escaped(outsideText(outside, per)) : "", escaped(missing));
}

function replays(found: GraphReplays, per: string): string {
  const rows = found.graphs.map((graph) => [escaped(graphText(graph, per)), ...[graph.device_ns, graph.idle_ns, graph.idle_before_ns, graph.call_ns].map((ns) => (ns === undefined ? "" : duration(ns)))]);
  const outside = found.outside.length > 0 ? escaped(outsideText(found.outside, per, "Operations")) : "";
  return section("CUDA graphs", escaped(replaysText(found, per)), table(["Graph", "On the device", "Idle in it", "Idle before", "Call"], rows), outside);
}

function serverSteps({ server, kinds, shapes }: Serving): string {
  const time = (ns: number | undefined) => (ns === undefined ? "" : duration(ns));
  const rows = [...(shapes.length > kinds.length ? kinds : []).map((steps) => ({ steps, shape: "" })), ...shapes.map((steps) => ({ steps, shape: shapeOf(steps) }))].map(({ steps, shape }) => [
    escaped(stepsText(steps) + (shape && ` (${shape})`)),
    share(steps.share),
    time(steps.step_ns),
    time(steps.device_ns),
    time(steps.pause_ns),
  ]);
  return section(`Steps of the inference server (${server})`, table(["Kind", "Share", "Host", "Device", "Pause before"], rows));
}
