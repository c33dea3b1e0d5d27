// Display names of kernels, files, runs and places in the program.
import type { MemoryAlert, Place, Verdict } from "../report";
import { moment } from "./format";

const PREFIXES = /^(?:void |at::native::|\(anonymous namespace\)::|at::|cutlass::|cudnn::|detail::)+/;

/** The name of a kernel without common prefixes. The full name is shown in its tooltip. */
export function kernelName(name: string): string {
  return name.replace(PREFIXES, "") || name;
}

const MIN_SHARED = 20; // characters that names have in common before they are cut there

/**
 * Short names for a list, by full name. Many kernels begin alike and differ far behind: what a name shares with its
 * neighbours in the alphabet is cut in the middle, so that the part in which it differs can be seen.
 */
export function distinctNames(fullNames: readonly string[]): ReadonlyMap<string, string> {
  const ordered = [...new Set(fullNames)].sort();
  return new Map(
    ordered.map((full, index) => {
      const name = kernelName(full);
      const shared = Math.max(sharedLength(full, ordered[index - 1] ?? ""), sharedLength(full, ordered[index + 1] ?? ""));
      const cut = shared - (full.length - name.length); // in the short name
      if (cut < MIN_SHARED) return [full, name];
      const word = Math.max(...["<", "(", ",", " ", ":"].map((mark) => name.lastIndexOf(mark, cut - 1))) + 1; // where the differing word begins
      const head = name.slice(0, name.search(/[<(]|$/));
      return [full, word > head.length + 2 ? `${head}…${name.slice(word)}` : name];
    }),
  );
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** The file name of a recording without its ending. All event files are called "telemetry". */
export function fileStem(source: string): string {
  if (source.startsWith("events.out.tfevents.")) return "telemetry";
  return source.replace(/(\.pt)?\.trace\.json(\.gz)?$|(\.(trace|peak|oom))?\.(pickle|pkl)(\.gz)?$/, "") || source;
}

/** torch.profiler appends the time of writing (ms or ns since 1970) to the worker's name; an event file starts with seconds. */
const TRACE_TIME = /^(.+)\.([12]\d{12}(?:\d{6})?)$/;
const EVENT_FILE_TIME = /^events\.out\.tfevents\.([12]\d{9})\./;
const MS_DIGITS = 13;
const HIDDEN_HOST = /^host-[0-9a-f]{6}_(\d+)$/; // sources/host_names.py; the hash is in the file name, which tooltips show

/** The display name of a recording within its run, and when its file was written (ms since 1970), if its name contains it. */
export function sourceParts(source: string): { readonly name: string; readonly at?: number } {
  const [, second] = EVENT_FILE_TIME.exec(source) ?? [];
  const [, worker, time] = TRACE_TIME.exec(fileStem(source)) ?? [];
  if (second !== undefined) return { name: fileStem(source), at: Number(second) * 1000 };
  if (worker === undefined || time === undefined) return { name: fileStem(source) };
  return { name: worker.replace(HIDDEN_HOST, "process $1"), at: Number(time.slice(0, MS_DIGITS)) };
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

const MONITOR_FOLDER = /\/tb_bottleneck(\/\d{8}-\d{6}[^/]*)?$/; // the source of the recording and its time are shown beside

/** The name of a run without the monitor's own folders. */
export const withoutMonitor = (name: string): string => name.replace(MONITOR_FOLDER, "");

const MIN_COMMON = 12; // characters; dropping fewer gains little

/** The number of characters that all these names begin with, up to the end of a word; 0 if they are few. */
export function commonStart(names: readonly string[]): number {
  const [first = "", ...others] = names;
  if (others.length === 0) return 0;
  let length = others.reduce((shared, name) => Math.min(shared, sharedLength(first, name)), first.length);
  while (length > 0 && !"_-. ".includes(first[length - 1]!)) length--;
  return length < MIN_COMMON ? 0 : length;
}

/** The folders that all these names begin with, with the last slash; "" if they share none. The last part of a name stays. */
export function commonFolders(names: readonly string[]): string {
  const [first = "", ...others] = names.map((name) => name.split("/").slice(0, -1));
  let shared = 0;
  while (shared < first.length && others.every((folders) => folders[shared] === first[shared])) shared++;
  return first.length === 0 || shared === 0 ? "" : `${(first as readonly string[]).slice(0, shared).join("/")}/`;
}

/** A text of at most `most` characters: names that begin alike mostly differ in the middle or at the end, so both ends stay. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

/** The problem with the memory that is more urgent than the verdict about the time. */
export const leadingAlert = ({ memory_alert: alert }: Pick<Verdict, "memory_alert">): MemoryAlert | undefined => (alert?.leads ? alert : undefined);

/** The first sentence about a recording: an urgent problem with the memory, what to change first and its gain, or the verdict. */
export const leadOf = (verdict: Verdict): string => leadingAlert(verdict)?.headline ?? (verdict.action || verdict.headline);

/** What leads, in few words: the regime, or an urgent problem with the memory. */
export const titleOf = (verdict: Verdict): string => leadingAlert(verdict)?.title ?? (verdict.title || verdict.regime);

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

/** "train.py:41 collate", without an unknown line, or the name of the record_function block. */
export function placeName({ file, line, function: name, block, module }: Pick<Place, "file" | "line" | "function" | "block" | "module">): string {
  if (!file && module && !block) return `module ${module}`;
  if (!file) return `block ${block || name}`;
  return line ? `${file}:${line} ${name}` : `${file} ${name}`;
}
