// What identifiers, kernels, files and runs are called before people.
import { moment } from "./format";

/** An identifier as words: "no_graph" is "no graph". */
export function words(identifier: string): string {
  return identifier.replaceAll("_", " ");
}

/** The same with a capital letter, to stand alone. */
export function title(identifier: string): string {
  return identifier.charAt(0).toUpperCase() + words(identifier).slice(1);
}

const PREFIXES = /^(?:void |at::native::|\(anonymous namespace\)::|at::|cutlass::|cudnn::|detail::)+/;

/** A kernel's name without what nearly all begin with; the whole one stands in its title. */
export function kernelName(name: string): string {
  return name.replace(PREFIXES, "") || name;
}

/** A recording's file name without the ending that all of them have; an event file's says nothing but that it is one. */
export function fileStem(source: string): string {
  if (source.startsWith("events.out.tfevents.")) return "telemetry";
  return source.replace(/(\.pt)?\.trace\.json(\.gz)?$/, "") || source;
}

/** Behind the worker's name torch.profiler writes when it wrote the file: ms, or ns, since 1970; an event file begins with the second. */
const WRITTEN_AT = /^(.+)\.([12]\d{12}(?:\d{6})?)$/;
const BEGUN_AT = /^events\.out\.tfevents\.([12]\d{9})\./;
const MS_DIGITS = 13;

/** What a recording is called beside its run, and when its file was written (ms since 1970), where its name tells. */
export function sourceParts(source: string): { readonly name: string; readonly at?: number } {
  const [, second] = BEGUN_AT.exec(source) ?? [];
  const [, worker, time] = WRITTEN_AT.exec(fileStem(source)) ?? [];
  if (second !== undefined) return { name: fileStem(source), at: Number(second) * 1000 };
  return worker !== undefined && time !== undefined ? { name: worker, at: Number(time.slice(0, MS_DIGITS)) } : { name: fileStem(source) };
}

/** The same as words: "host_42, 12 Nov 2026, 14:03:12". */
export function sourceName(source: string): string {
  const { name, at } = sourceParts(source);
  return at === undefined ? name : `${name}, ${moment(at)}`;
}

/** "." is the logdir itself. */
export function runName(run: string): string {
  return run === "." || run === "" ? "(logdir)" : run;
}

const ROOM = 40; // characters of a run's name over its recordings
const STAMP = /(\/tb_bottleneck)\/\d{8}-\d{6}[^/]*$/; // the folder in which a monitor writes; its recording tells the time

/** A long run's name without its first folders: runs differ at the end of their names. */
export function shortRun(run: string): string {
  const folders = runName(run).replace(STAMP, "$1").split("/");
  let left = 0;
  while (left < folders.length - 1 && folders.slice(left).join("/").length > ROOM) left++;
  return `${left > 0 ? "…/" : ""}${folders.slice(left).join("/")}`;
}
