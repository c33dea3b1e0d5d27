// Display names of kernels, files, runs and places in the program.
import type { Place } from "../report";
import { moment } from "./format";

const PREFIXES = /^(?:void |at::native::|\(anonymous namespace\)::|at::|cutlass::|cudnn::|detail::)+/;

/** The name of a kernel without common prefixes. The full name is shown in its tooltip. */
export function kernelName(name: string): string {
  return name.replace(PREFIXES, "") || name;
}

/** The file name of a recording without its ending. All event files are called "telemetry". */
export function fileStem(source: string): string {
  if (source.startsWith("events.out.tfevents.")) return "telemetry";
  return source.replace(/(\.pt)?\.trace\.json(\.gz)?$/, "") || source;
}

/** torch.profiler appends the time of writing (ms or ns since 1970) to the worker's name; an event file starts with seconds. */
const TRACE_TIME = /^(.+)\.([12]\d{12}(?:\d{6})?)$/;
const EVENT_FILE_TIME = /^events\.out\.tfevents\.([12]\d{9})\./;
const MS_DIGITS = 13;

/** The display name of a recording within its run, and when its file was written (ms since 1970), if its name contains it. */
export function sourceParts(source: string): { readonly name: string; readonly at?: number } {
  const [, second] = EVENT_FILE_TIME.exec(source) ?? [];
  const [, worker, time] = TRACE_TIME.exec(fileStem(source)) ?? [];
  if (second !== undefined) return { name: fileStem(source), at: Number(second) * 1000 };
  return worker !== undefined && time !== undefined ? { name: worker, at: Number(time.slice(0, MS_DIGITS)) } : { name: fileStem(source) };
}

/** The same as text: "host_42, 12 Nov 2026, 14:03:12". */
export function sourceName(source: string): string {
  const { name, at } = sourceParts(source);
  return at === undefined ? name : `${name}, ${moment(at)}`;
}

/** The display name of a run. "." is the logdir itself. */
export function runName(run: string): string {
  return run === "." || run === "" ? "(logdir)" : run;
}

const MAX_RUN_NAME = 40; // characters
const MONITOR_DIRECTORY = /(\/tb_bottleneck)\/\d{8}-\d{6}[^/]*$/; // its time is shown with the recording

/** A long run name without its first folders: runs usually differ at the end of their names. */
export function shortRun(run: string): string {
  const folders = runName(run).replace(MONITOR_DIRECTORY, "$1").split("/");
  let first = 0;
  while (first < folders.length - 1 && folders.slice(first).join("/").length > MAX_RUN_NAME) first++;
  return `${first > 0 ? "…/" : ""}${folders.slice(first).join("/")}`;
}

/** Splits a headline into its first sentence and the rest. */
export function splitHeadline(headline: string): readonly [string, string] {
  const [first = "", ...rest] = headline.split(/(?<=[.!?]) (?=\p{Lu})/u);
  return [first, rest.join(" ")];
}

const MAX_PLACES = 3;
const MIN_PLACE_SHARE = 0.05; // lines with less of the cost do not matter

/** The places of a finding that are shown. */
export function shownPlaces(where: readonly Place[]): readonly Place[] {
  return where.slice(0, MAX_PLACES).filter((place) => place.share >= MIN_PLACE_SHARE);
}

/** "train.py:41 collate", or the name of the record_function block. */
export function placeName({ file, line, function: name, block }: Place): string {
  return file ? `${file}:${line} ${name}` : `block ${block || name}`;
}
