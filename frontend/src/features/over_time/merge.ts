// Merges telemetry that was loaded in parts: new samples, or a range in detail. Pure.
import type { Series, StepRows, TelemetryAnswer } from "../../shared/report";

/** The range that a part replaces: (from, to], ns since 1970. */
export interface Replaced {
  readonly from: number;
  readonly to: number;
}

/** The part is appended to each series and to the steps and replaces nothing. */
export const APPENDED = "appended";

/** The loaded telemetry with `part` in place of the replaced range. Phases, notes and losses are those of the part: every
 * response contains all of them.
 */
export function merged(loaded: TelemetryAnswer, part: TelemetryAnswer, replaced: Replaced | typeof APPENDED): TelemetryAnswer {
  const loadedByName = new Map(loaded.series.map((each) => [nameOf(each), each]));
  const partByName = new Map(part.series.map((each) => [nameOf(each), each]));
  const series = [...new Set([...loadedByName.keys(), ...partByName.keys()])].sort().map((name): Series => {
    const [before, inside] = [loadedByName.get(name), partByName.get(name)];
    if (!before || !inside) return (before ?? inside)!;
    const cut = cutOf(before.unix_ns, inside.unix_ns, replaced);
    return { ...before, unix_ns: joined(before.unix_ns, inside.unix_ns, cut), values: joined(before.values, inside.values, cut) };
  });
  const steps = mergedSteps(loaded.steps, part.steps, replaced);
  return steps ? { ...part, series, steps } : { ...part, series };
}

const nameOf = ({ name, device }: Series): string => `${name} ${device}`;

function mergedSteps(loaded: StepRows | undefined, part: StepRows | undefined, replaced: Replaced | typeof APPENDED): StepRows | undefined {
  if (!loaded || !part) return loaded ?? part;
  const cut = cutOf(loaded.end_unix_ns, part.end_unix_ns, replaced);
  const names = [...new Set([...loaded.columns, ...part.columns].map(({ name }) => name))];
  return {
    number: joined(loaded.number, part.number, cut),
    end_unix_ns: joined(loaded.end_unix_ns, part.end_unix_ns, cut),
    wall_ns: joined(loaded.wall_ns, part.wall_ns, cut),
    columns: names.map((name) => ({ name, values: joined(columnOf(loaded, name), columnOf(part, name), cut) })),
    steps: [], // the server sends points of a downsampled series, not rows
  };
}

/** A column with a value per row. A missing column is all unknown. */
function columnOf({ columns, end_unix_ns }: StepRows, name: string): readonly number[] {
  const unknown = null as unknown as number; // as the server writes unknown values
  return columns.find((column) => column.name === name)?.values ?? end_unix_ns.map(() => unknown);
}

interface Cut {
  readonly before: number; // rows kept at the start
  readonly after: number; // rows kept from here to the end
  readonly first: number; // of the part: rows used from here
  readonly stop: number; // and up to here
}

function cutOf(times: readonly number[], inside: readonly number[], replaced: Replaced | typeof APPENDED): Cut {
  const span = replaced === APPENDED ? { from: times[times.length - 1] ?? -Infinity, to: Infinity } : replaced;
  return { before: countUpTo(times, span.from), after: countUpTo(times, span.to), first: countUpTo(inside, span.from), stop: countUpTo(inside, span.to) };
}

function joined<T>(rows: readonly T[], inside: readonly T[], { before, after, first, stop }: Cut): readonly T[] {
  if (first === stop && before === after) return rows;
  return [...rows.slice(0, before), ...inside.slice(first, stop), ...rows.slice(after)];
}

/** The number of times (sorted) that are not after this one. */
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

/** The time of the last sample or step, if there is one. */
export function lastOf({ series, steps }: TelemetryAnswer): number | undefined {
  const ends = [...series.map(({ unix_ns }) => unix_ns), steps?.end_unix_ns ?? []].map((times) => times[times.length - 1] ?? -Infinity);
  const last = Math.max(-Infinity, ...ends);
  return Number.isFinite(last) ? last : undefined;
}

/** The number of rows of the longest column. */
export function longestOf({ series, steps }: TelemetryAnswer): number {
  return Math.max(0, steps?.end_unix_ns.length ?? 0, ...series.map(({ unix_ns }) => unix_ns.length));
}
