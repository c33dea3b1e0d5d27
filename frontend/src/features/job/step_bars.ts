// The timeline of ranks: their steps on the job's clock, each divided by what its time went to. Pure.
import { REGIMES } from "../../shared/regimes";
import type { RankTable, StepTable } from "../../shared/report";

/** A part of a step. The sum of the parts of a step is at most 1. */
export interface Part {
  readonly regime: string;
  readonly share: number;
  /** True for the part of the collectives in which the rank waits for others. */
  readonly waiting: boolean;
}

export interface StepBar {
  readonly begin: number; // share of the shown time
  readonly length: number;
  readonly parts: readonly Part[];
}

export interface RankBars {
  readonly rank: number;
  readonly steps: readonly StepBar[];
}

/** Collectives last: ranks arrive one after another, and leave together. */
const ORDER: readonly string[] = [...REGIMES.map(({ id }) => id).filter((id) => id !== "communication"), "communication"];

/** The length of the shown time in ns. */
export const lengthOfSteps = ({ end_ns }: StepTable): number => end_ns.reduce((longest, end) => Math.max(longest, end), 0);

export function barsOf(table: RankTable, steps: StepTable, ranks: readonly number[]): readonly RankBars[] {
  const whole = lengthOfSteps(steps) || 1;
  const columns = ORDER.flatMap((regime) => steps.account.filter((each) => each.regime === regime));
  const barAt = (at: number): StepBar => {
    const begin = steps.begin_ns[at] ?? 0;
    return { begin: begin / whole, length: ((steps.end_ns[at] ?? begin) - begin) / whole, parts: columns.flatMap(({ regime, share }) => partsOf(regime, share[at] ?? 0, steps.wait_share[at] ?? 0)) };
  };
  return ranks.flatMap((rank) => {
    const row = table.rank.indexOf(rank);
    if (row < 0) return [];
    return [{ rank, steps: Array.from({ length: steps.count }, (_, step) => barAt(row * steps.count + step)) }];
  });
}

function partsOf(regime: string, share: number, wait: number): readonly Part[] {
  if (share <= 0) return [];
  if (regime !== "communication") return [{ regime, share, waiting: false }];
  const waiting = Math.min(wait, share);
  return [
    { regime, share: waiting, waiting: true },
    { regime, share: share - waiting, waiting: false },
  ].filter((part) => part.share > 0);
}

const MAX_NAMED = 4;
const FEW = 16; // ranks that are all shown

/** The ranks that are shown first: those named as causes, one that waits most, and one in the middle. */
export function firstSelection(table: RankTable, named: readonly number[]): readonly number[] {
  const waits = table.wait_share.length ? table.wait_share : (table.account.find(({ regime }) => regime === "communication")?.share ?? []);
  const byWait = table.rank.map((rank, row) => [waits[row] ?? 0, rank] as const).sort(([a], [b]) => b - a).map(([, rank]) => rank);
  const typical = byWait[Math.floor(byWait.length / 2)];
  const chosen = [...named.slice(0, MAX_NAMED), ...byWait.slice(0, 1), ...(typical === undefined ? [] : [typical])];
  const few = table.rank.length <= FEW ? table.rank : chosen;
  return [...new Set(few)].sort((a, b) => a - b);
}
