// Display texts of jobs.
import { REGIMES } from "../../shared/regimes";
import type { Culprit } from "../../shared/report";
import { count } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";

const LABELS: ReadonlyMap<string, string> = new Map(REGIMES.map(({ id, label }) => [id, label]));

/** The label of a regime. */
export const labelOf = (regime: string): string => LABELS.get(regime) ?? title(regime);

const KINDS: ReadonlyMap<string, string> = new Map([
  ["data", "Data parallel"],
  ["tensor", "Tensor parallel"],
  ["pipeline", "Pipeline"],
  ["expert", "Expert parallel"],
  ["context", "Context parallel"],
  ["sharded", "Sharded (FSDP, ZeRO)"],
  ["unknown", "Of unknown kind"],
]);

/** The kind of a process group. */
export const kindOf = (kind: string): string => KINDS.get(kind) ?? title(kind);

const CAUSE_REGIMES: ReadonlyMap<string, string> = new Map([
  ["slow_rank", "host"],
  ["slow_host", "host"],
  ["throttled_rank", "compute"],
  ["rank_input", "input"],
  ["rank_interruption", "interruption"],
  ["unsynchronised_gc", "interruption"],
]);

/** The regime of the time that a cause takes; of all others it is waiting in collectives. */
export const regimeOfCause = (cause: string): string => CAUSE_REGIMES.get(cause) ?? "communication";

const LEAST_GAIN = 1.01;

/** Returns true if a fix gains nothing alone: other causes hold the job up as long. */
export const isHidden = ({ speedup }: Culprit, culprits: number): boolean => culprits > 1 && speedup?.basis === "replay" && speedup.expected < LEAST_GAIN;

const MAX_RANGES = 6;

/** "rank 3", "ranks 0–3, 5". */
export function ranksText(ranks: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const rank of ranks) {
    const last = ranges[ranges.length - 1];
    if (last && rank === last[1] + 1) last[1] = rank;
    else ranges.push([rank, rank]);
  }
  const shown = ranges.slice(0, MAX_RANGES).map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`));
  const more = ranges.length > MAX_RANGES ? ` and others, ${count(ranks.length)} in total` : "";
  return `${ranks.length === 1 ? "rank" : "ranks"} ${shown.join(", ")}${more}`;
}

/** Where a cause is: "Rank 3", "Ranks 8–15, host 2", "All ranks". */
export function placeOf({ ranks, host }: Culprit, recorded: number): string {
  const all = ranks.length > 1 && ranks.length === recorded;
  return `${all ? "All ranks" : title(ranksText(ranks))}${host ? `, host ${host}` : ""}`;
}
