// Telemetry that was asked for in parts, put together again: what was added since, or a stretch in its full detail. Pure.
import type { Series, StepRows, TelemetryAnswer } from "../../shared/report";

/** The time that a part replaces: (from, to], ns since 1970. */
export interface Replaced {
  readonly from: number;
  readonly to: number;
}

/** `after` what was known of each series and of the steps: nothing of it is replaced. */
export const ADDED = "added";

/**
 * What is known, with `part` in the place of what it replaces. Stretches, notes and losses are the part's: every answer
 * tells all of them.
 */
export function spliced(known: TelemetryAnswer, part: TelemetryAnswer, replaced: Replaced | typeof ADDED): TelemetryAnswer {
  const mine = new Map(known.series.map((one) => [nameOf(one), one]));
  const theirs = new Map(part.series.map((one) => [nameOf(one), one]));
  const series = [...new Set([...mine.keys(), ...theirs.keys()])].sort().map((name): Series => {
    const [before, inside] = [mine.get(name), theirs.get(name)];
    if (!before || !inside) return (before ?? inside)!;
    const cut = cutOf(before.unix_ns, inside.unix_ns, replaced);
    return { ...before, unix_ns: joined(before.unix_ns, inside.unix_ns, cut), values: joined(before.values, inside.values, cut) };
  });
  const steps = splicedSteps(known.steps, part.steps, replaced);
  return steps ? { ...part, series, steps } : { ...part, series };
}

const nameOf = ({ name, device }: Series): string => `${name} ${device}`;

function splicedSteps(known: StepRows | undefined, part: StepRows | undefined, replaced: Replaced | typeof ADDED): StepRows | undefined {
  if (!known || !part) return known ?? part;
  const cut = cutOf(known.end_unix_ns, part.end_unix_ns, replaced);
  const names = [...new Set([...known.columns, ...part.columns].map(({ name }) => name))];
  return {
    number: joined(known.number, part.number, cut),
    end_unix_ns: joined(known.end_unix_ns, part.end_unix_ns, cut),
    wall_ns: joined(known.wall_ns, part.wall_ns, cut),
    columns: names.map((name) => ({ name, values: joined(columnOf(known, name), columnOf(part, name), cut) })),
  };
}

/** A column as long as its rows; where it was not told, nothing is known. */
function columnOf({ columns, end_unix_ns }: StepRows, name: string): readonly number[] {
  const unknown = null as unknown as number; // as the server writes it
  return columns.find((column) => column.name === name)?.values ?? end_unix_ns.map(() => unknown);
}

interface Cut {
  readonly before: number; // rows kept from the beginning
  readonly after: number; // and from here to the end
  readonly first: number; // of the part: rows from here
  readonly stop: number; // and before here
}

function cutOf(times: readonly number[], inside: readonly number[], replaced: Replaced | typeof ADDED): Cut {
  const span = replaced === ADDED ? { from: times[times.length - 1] ?? -Infinity, to: Infinity } : replaced;
  return { before: countUpTo(times, span.from), after: countUpTo(times, span.to), first: countUpTo(inside, span.from), stop: countUpTo(inside, span.to) };
}

function joined<T>(rows: readonly T[], inside: readonly T[], { before, after, first, stop }: Cut): readonly T[] {
  if (first === stop && before === after) return rows;
  return [...rows.slice(0, before), ...inside.slice(first, stop), ...rows.slice(after)];
}

/** How many of these times, which never fall, are not after this one. */
export function countUpTo(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last time of any reading or step; undefined where there is none. */
export function lastOf({ series, steps }: TelemetryAnswer): number | undefined {
  const ends = [...series.map(({ unix_ns }) => unix_ns), steps?.end_unix_ns ?? []].map((times) => times[times.length - 1] ?? -Infinity);
  const last = Math.max(-Infinity, ...ends);
  return Number.isFinite(last) ? last : undefined;
}

/** Rows of the longest column. */
export function longestOf({ series, steps }: TelemetryAnswer): number {
  return Math.max(0, steps?.end_unix_ns.length ?? 0, ...series.map(({ unix_ns }) => unix_ns.length));
}
