// Texts of the parts beside the findings.
import type { CompiledFunction, GraphBreak, GraphReplays, InputPipeline, InputStorage, OutsideGraph, ReplayedGraph, Report, StepPart } from "../../shared/report";
import { bytes, count, duration, share } from "../../shared/text/format";
import { placeName } from "../../shared/text/names";

const MIN_SHARE = 0.005;
const STORAGE: Record<string, string> = { rotational: "a rotating disk", ssd: "an SSD", network: "a network file system", memory: "memory" };

export const stagesTitle = ({ stages }: InputPipeline) => (stages.length > 0 ? "Making a batch, by stage" : "Making a batch");

export const shownStages = ({ stages }: InputPipeline) => stages.filter((stage) => stage.share >= MIN_SHARE);

export function stagesText({ stages, basis, batch_ns, workers, workers_needed, waiting_share, storage }: InputPipeline): string {
  const data = storage ? storageText(storage) : "";
  if (stages.length === 0) return data;
  const facts = [
    batch_ns !== undefined && `one process takes ${duration(batch_ns)} for a batch`,
    workers !== undefined && (workers ? `${count(workers)} ${workers === 1 ? "worker makes" : "workers make"} them` : "the training process makes them"),
    workers_needed !== undefined && `${count(workers_needed)} would keep up with the rest of the step`,
    waiting_share !== undefined && `a worker has no batch to make for ${share(waiting_share)} of its time`,
  ].filter(Boolean);
  return `${sentence(facts.join("; "))} ${basis === "frames" ? "From the Python frames of the trace." : "From samples of the workers' stacks."} ${data}`.trim();
}

function storageText({ kind, filesystem, read_bytes_per_batch, disk_bytes_per_batch, reads_per_batch, opens_per_batch }: InputStorage): string {
  const place = [STORAGE[kind], kind && filesystem ? `(${filesystem})` : filesystem].filter(Boolean).join(" ");
  const disk = disk_bytes_per_batch !== undefined ? `, ${bytes(disk_bytes_per_batch)} of them from the disk` : "";
  const read = read_bytes_per_batch !== undefined ? `${bytes(read_bytes_per_batch)} per batch in ${count(Math.round(reads_per_batch ?? 0))} calls${disk}` : "";
  return `Data: ${[place && `on ${place}`, read, opens_per_batch !== undefined && `${count(opens_per_batch)} files opened per batch`].filter(Boolean).join("; ")}.`;
}

export const PARTS_TITLE = "Parts of the step, by the functions that the loop calls";

export const partName = ({ place }: StepPart): string => (place ? placeName(place) : "the loop itself");

/** "Launch overhead 36 %, Compute 20 %". */
export const ownersText = ({ account }: StepPart): string => account.map(({ title, share: part }) => `${title} ${share(part)}`).join(", ");

/** What numbers of the parts refer to. */
export const perOf = ({ window }: Report): string => (window?.basis === "whole" ? "in all" : "per step");

export const regionsText = (regions: number, compile_ns: number | undefined, per: string): string =>
  `${count(regions)} compiled ${regions === 1 ? "region" : "regions"} ${per}${compile_ns ? `; compiling takes ${duration(compile_ns)} ${per}` : ""}.`;

/** "Compiled 2 times". */
export function compiledText({ compilations, failure }: CompiledFunction): string {
  if (failure) return "Runs without compiled code";
  return `Compiled${compilations > 0 ? ` ${count(compilations)} ${compilations === 1 ? "time" : "times"}` : ""}`;
}

export const where = ({ file, line, function: name }: CompiledFunction | GraphBreak): string =>
  name || file ? placeName({ file, line, function: name, block: "", module: "" }) : "a function that was not recorded";

export const replaysText = ({ launches, outside_operations: many, outside_ns }: GraphReplays, per: string): string =>
  `${count(launches)} ${launches === 1 ? "launch" : "launches"} ${per}; outside of them, ${count(many)} operations run for ${duration(outside_ns)} ${per}.`;

/** "993 operations in model.py:33 call, 4 per step". */
export const graphText = ({ operations, launches, place }: ReplayedGraph, per: string): string =>
  `${count(operations)} operations${place ? ` in ${placeName(place)}` : ""}, ${count(launches)} ${per}`;

export const outsideText = (outside: readonly OutsideGraph[], per: string, what = "Operators"): string =>
  `${what} outside of the graphs, ${per}: ${outside.map(({ name, calls, ns_per_step }) => `${name} (${count(calls)} ${calls === 1 ? "call" : "calls"}, ${duration(ns_per_step)})`).join(", ")}.`;

export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
const sentence = (text: string): string => (text ? `${capital(text)}.` : "");
