// The trainings of the list: the recordings of one training are one entry with one verdict. The server groups them.
import type { RunEntry, RunList, Training, TrainingJob } from "../report";
import { count, epochMs } from "../text/format";
import { commonFolders, commonStart, runName, sourceParts, withoutMonitor } from "../text/names";
import { isTrace, withWords } from "./groups";
import { keyOf, type Key } from "./keys";

/** The recording whose verdict counts, with what the whole training adds to it. */
export interface TrainingEntry extends RunEntry {
  /** The recordings of the training; the first is this one. */
  readonly members: readonly RunEntry[];
  /** The recording that names the training: a trace, because all telemetry is named alike. */
  readonly named: RunEntry;
  /** Why this evidence source is trusted; "" without another one. */
  readonly because: string;
  readonly job?: TrainingJob;
  /** When the recording that names it was written (ms since 1970): a copied file keeps the time in its name. */
  readonly at: number;
  /** The folder of its run below those that all trainings share, without a slash at the end; "" if it is in none. */
  readonly folder: string;
  /** Its name in that folder, without what all names there begin with. */
  readonly label: string;
}

interface Known {
  readonly shared: string;
  readonly trainings: readonly TrainingEntry[];
  readonly byKey: ReadonlyMap<Key, TrainingEntry>;
}

const known = new WeakMap<RunList, Known>();

/** The trainings in the order of their first recordings. The same list gives the same objects. */
export const trainingsOf = (list: RunList): readonly TrainingEntry[] => knownOf(list).trainings;

/** The folders that all trainings share, with a slash at the end. */
export const sharedFolders = (list: RunList): string => knownOf(list).shared;

/** The training that a recording belongs to. */
export const trainingOf = (list: RunList, key: Key | undefined): TrainingEntry | undefined => (key === undefined ? undefined : knownOf(list).byKey.get(key));

function knownOf(list: RunList): Known {
  let found = known.get(list);
  if (!found) {
    const { shared, trainings } = withNames(grouped(list));
    found = { shared, trainings, byKey: new Map(trainings.flatMap((training) => training.members.map((member) => [keyOf(member), training] as const))) };
    known.set(list, found);
  }
  return found;
}

type Unnamed = Omit<TrainingEntry, "folder" | "label" | "at">;

/** Adds the names. The file of a recording is part of the name if several trainings have the same run. */
function withNames(entries: readonly Unnamed[]): { readonly shared: string; readonly trainings: readonly TrainingEntry[] } {
  const paths = entries.map(({ named }) => withoutMonitor(runName(named.run)));
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(path, (counts.get(path) ?? 0) + 1);
  const shared = commonFolders(paths);
  const names = entries.map(({ named }, index) => {
    const path = paths[index]!.slice(shared.length);
    const end = path.lastIndexOf("/") + 1;
    const { name: file, at = epochMs(named.modified_unix_ns) } = sourceParts(named.source);
    return { folder: path.slice(0, Math.max(0, end - 1)), name: path.slice(end) + (counts.get(paths[index]!)! > 1 ? ` › ${file}` : ""), at };
  });
  const starts = commonStarts(names);
  const label = (name: string, start: number) => (start > 0 ? `…${name.slice(start)}` : name);
  const trainings = entries.map((entry, index) => {
    const { folder, name, at } = names[index]!;
    return { ...entry, folder, label: label(name, starts.get(folder)!), at };
  });
  return { shared, trainings };
}

/** By folder, the number of characters that all names in it begin with. */
function commonStarts(names: readonly { readonly folder: string; readonly name: string }[]): ReadonlyMap<string, number> {
  const byFolder = new Map<string, string[]>();
  for (const { folder, name } of names) {
    const own = byFolder.get(folder);
    if (own) own.push(name);
    else byFolder.set(folder, [name]);
  }
  return new Map([...byFolder].map(([folder, own]) => [folder, commonStart(own)]));
}

export interface Section {
  readonly folder: string;
  readonly entries: readonly TrainingEntry[];
}

/** The trainings that match the filter, by folder, in the server's order. */
export function sectionsOf(entries: readonly TrainingEntry[], filter: string): readonly Section[] {
  const byFolder = new Map<string, TrainingEntry[]>();
  for (const entry of withWords(entries, filter)) {
    const own = byFolder.get(entry.folder);
    if (own) own.push(entry);
    else byFolder.set(entry.folder, [entry]);
  }
  return [...byFolder].map(([folder, own]) => ({ folder, entries: own }));
}

/** The training that is `rows` further down the filtered list than `from`; the first one if `from` is not in the list. */
export function neighbour(entries: readonly TrainingEntry[], filter: string, from: TrainingEntry | undefined, rows: 1 | -1): TrainingEntry | undefined {
  const shown = sectionsOf(entries, filter).flatMap((section) => section.entries);
  const at = from === undefined ? -1 : shown.findIndex((entry) => keyOf(entry) === keyOf(from));
  return at < 0 ? shown[0] : shown[Math.min(Math.max(at + rows, 0), shown.length - 1)];
}

function grouped({ runs, trainings }: RunList): readonly Unnamed[] {
  const several = new Map<number, Training>(); // by the position of the first recording in the list
  const others = new Set<number>();
  for (const training of trainings) {
    const first = Math.min(...training.members);
    several.set(first, training);
    for (const member of training.members) if (member !== first) others.add(member);
  }
  return runs.flatMap((entry, position) => {
    const training = several.get(position);
    if (training) return [entryOf(training.members.flatMap((member) => runs[member] ?? []), training)];
    return others.has(position) ? [] : [entryOf([entry])];
  });
}

const MIN_STEPS = 20; // tb_bottleneck/report/cross_check.py

/** The mean step of the whole run, if one telemetry has it: the few steps before a trace may be at the start. */
function wholeRun(members: readonly RunEntry[]): Partial<RunEntry> {
  const [telemetry, ...others] = members.filter(({ evidence_source }) => evidence_source === "telemetry");
  if (!telemetry?.step_ns || others.length > 0 || telemetry.step_times_ns.length < MIN_STEPS) return {};
  return { step_ns: telemetry.step_ns };
}

function entryOf(members: readonly RunEntry[], training?: Training): Unnamed {
  const first = members[0]!;
  const named = members.find(isTrace) ?? first;
  const because = training?.because ?? "";
  const job = training?.job;
  if (members.length === 1) return { ...first, members, named, because };
  const memory = members.filter(({ peak_bytes }) => peak_bytes !== undefined).sort((a, b) => b.peak_bytes! - a.peak_bytes!)[0];
  const review = members.find((member) => member.review)?.review;
  const efficiency = members.find((member) => member.efficiency?.samples_per_step !== undefined)?.efficiency;
  const revision = members.find((member) => member.revision)?.revision;
  const { verdict: _verdict, gain: _gain, ...rest } = first;
  return {
    ...(job ? { ...rest, action: job.action, ...(job.verdict ? { verdict: job.verdict } : {}), ...(job.gain ? { gain: job.gain } : {}), job } : first),
    ...(training?.memory_alert && !job && first.verdict ? { verdict: { ...first.verdict, memory_alert: training.memory_alert } } : {}),
    ...progressOf(members),
    ...(job ? {} : wholeRun(members)),
    ...(memory ? { peak_bytes: memory.peak_bytes!, ...(memory.headroom_bytes === undefined ? {} : { headroom_bytes: memory.headroom_bytes }) } : {}),
    ...(review ? { review } : {}),
    ...(revision ? { revision } : {}),
    ...(efficiency ? { efficiency } : {}),
    live: members.some(({ live }) => live),
    members,
    named,
    because,
  };
}

/** The progress of all recordings. */
function progressOf(members: readonly RunEntry[]): Pick<RunEntry, "state" | "progress"> {
  const done = members.filter(({ state }) => state === "done").length;
  if (done === members.length) return { state: "done", progress: 1 };
  const progress = members.reduce((sum, member) => sum + (member.state === "done" ? 1 : member.progress), 0) / members.length;
  return { state: done > 0 || progress > 0 ? "analysing" : "waiting", progress };
}

const KINDS: Readonly<Record<string, string>> = { telemetry: "Telemetry", snapshot: "Memory snapshot" };

/** What a recording is called among those of its training: "Trace", "Telemetry", "Rank 3". */
export function partName({ evidence_source, rank }: RunEntry, training: TrainingEntry): string {
  const kind = KINDS[evidence_source] ?? "Trace";
  if (rank === undefined || !training.job) return kind;
  return evidence_source === "trace" ? `Rank ${rank}` : `Rank ${rank}: ${kind.toLowerCase()}`;
}

/** Why a job has no verdict: the reports of single ranks do not tell which one holds the others up. "" with a verdict. */
export function notJudged({ job, verdict }: TrainingEntry): string {
  if (!job || verdict) return "";
  return `Job of ${count(job.world_size)} ranks: not judged together yet. Open it, or run tb-bottleneck diagnose --write DIR.`;
}

/** The evidence sources in few words: "trace and telemetry", "8 ranks". */
export function evidenceOf({ members, job }: TrainingEntry): string {
  if (job) return `${job.ranks} of ${job.world_size} ranks`;
  const kinds = [...new Set(members.map(({ evidence_source }) => (KINDS[evidence_source] ?? "Trace").toLowerCase()))];
  return kinds.join(" and ");
}
