// The list of recordings, filtered and grouped by run directory.
import type { RunEntry } from "../report";
import { fileStem, runName, titleOf } from "../text/names";
import { severityWord } from "../text/vocabulary";
import { reviewSummary } from "./review";

export interface Group {
  readonly run: string;
  readonly entries: readonly RunEntry[];
}

/** The entries that contain every word: in the names of recordings, the verdict, its severity or regime, the action, the device, the state, the review. */
export function withWords<T extends RunEntry>(entries: readonly T[], text: string): readonly T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? entries : entries.filter((entry) => words.every((word) => textOf(entry).includes(word)));
}

const texts = new WeakMap<RunEntry, string>(); // a letter in the filter asks for the text of every entry

function textOf(entry: RunEntry & { readonly members?: readonly RunEntry[] }): string {
  let text = texts.get(entry);
  if (text === undefined) {
    const { verdict, device, action, state, health, live, revision, members = [entry] } = entry;
    const names = members.flatMap((member) => [runName(member.run), member.source, fileStem(member.source), member.evidence_source]);
    const judged = verdict ? [titleOf(verdict), severityWord(verdict), verdict.title, verdict.regime, REGIME_WORDS[verdict.regime] ?? ""] : [health];
    text = [...names, device, action, state, live ? "live" : "", revision ?? "", reviewSummary(entry), ...judged].join(" ").toLowerCase();
    texts.set(entry, text);
  }
  return text;
}

const IDLE_SHARE = 64; // entries between two looks at the time left

/** Prepares the texts while the page is idle, so that the first letter in the filter does not wait for all of them. */
export function prepareTexts(entries: readonly RunEntry[]): () => void {
  let next = 0;
  const work = (left: IdleDeadline) => {
    while (next < entries.length && left.timeRemaining() > 1) for (const end = next + IDLE_SHARE; next < Math.min(end, entries.length); next++) textOf(entries[next]!);
    if (next < entries.length) handle = requestIdleCallback(work);
  };
  let handle = requestIdleCallback(work);
  return () => cancelIdleCallback(handle);
}

/** What users call the regimes, beside the words of their titles. */
const REGIME_WORDS: Readonly<Record<string, string>> = {
  input: "slow loader dataloader data loading",
  transfer: "transfer h2d d2h pcie",
  sync: "synchronization item cpu",
  launch: "dispatch overhead small kernels",
  host: "python cpu",
  allocator: "cudamalloc allocation fragmentation",
  interruption: "checkpoint logging evaluation validation garbage collection",
  communication: "nccl gloo all-reduce distributed straggler",
  memory: "bandwidth bound",
  compute: "arithmetic bound",
  underfilled: "occupancy",
};

/** Groups the recordings that match the filter by run directory, in the server's order. */
export function groups(entries: readonly RunEntry[], filter: string): readonly Group[] {
  const byRun = new Map<string, RunEntry[]>();
  for (const entry of withWords(entries, filter)) {
    const own = byRun.get(entry.run);
    if (own) own.push(entry);
    else byRun.set(entry.run, [entry]);
  }
  return [...byRun].map(([run, own]) => ({ run, entries: own }));
}

export const isTelemetry = ({ evidence_source }: RunEntry): boolean => evidence_source === "telemetry";

export const isTrace = ({ evidence_source }: RunEntry): boolean => evidence_source !== "telemetry" && evidence_source !== "snapshot";

/** The recordings that a comparison reads: traces, and the telemetry of runs without a trace. */
export function comparable(entries: readonly RunEntry[]): readonly RunEntry[] {
  const traced = new Set(entries.filter(isTrace).map(({ run }) => run));
  return entries.filter((entry) => isTrace(entry) || (isTelemetry(entry) && !traced.has(entry.run)));
}
