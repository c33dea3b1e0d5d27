// What this browser saw of a logdir at the last visit: which recordings, and how long their steps took.
import type { RunList } from "../../shared/report";
import { keyOf, type Key } from "../../shared/run/keys";
import type { TrainingEntry } from "../../shared/run/trainings";
import { browserStorage } from "../../shared/page/storage";

/** Mean step times in ns by recording (0 if it had none), and when that was (ms since 1970). */
export interface Visit {
  readonly at: number;
  readonly steps: Readonly<Record<Key, number>>;
}

/** A training whose mean step takes this much longer than at the last visit counts as slower. */
export const SLOWER = 1.05;
const MAX_RECORDINGS = 5_000; // the browser stores 5 MB for each origin
const storageKey = (logdir: string) => `tb_bottleneck.visit.${logdir}`;

/** How a training differs from the last visit; "" if it does not, or if this is the first visit. */
export function changeOf(entry: TrainingEntry, visit: Visit | undefined): "" | "new" | "slower" {
  if (!visit) return "";
  if (entry.members.every((member) => visit.steps[keyOf(member)] === undefined)) return "new";
  const before = visit.steps[keyOf(entry)] ?? 0;
  return before > 0 && entry.step_ns !== undefined && entry.step_ns > SLOWER * before ? "slower" : "";
}

/** The last visit of this logdir; undefined if there was none or the browser stores nothing. */
export function lastVisit(logdir: string, storage: Pick<Storage, "getItem"> | undefined = browserStorage()): Visit | undefined {
  try {
    const value: unknown = JSON.parse(storage?.getItem(storageKey(logdir)) ?? "null");
    return isVisit(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Stores what is seen now. A full or forbidden storage only means that the next visit cannot compare. */
export function storeVisit({ logdir, runs }: RunList, at: number, storage: Pick<Storage, "setItem"> | undefined = browserStorage()): void {
  const steps = Object.fromEntries(runs.slice(0, MAX_RECORDINGS).map((entry) => [keyOf(entry), entry.step_ns ?? 0]));
  try {
    storage?.setItem(storageKey(logdir), JSON.stringify({ at, steps } satisfies Visit));
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}

function isVisit(value: unknown): value is Visit {
  if (typeof value !== "object" || value === null || !("at" in value) || !("steps" in value)) return false;
  return typeof value.at === "number" && typeof value.steps === "object" && value.steps !== null;
}
