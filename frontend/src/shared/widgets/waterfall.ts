// Waterfall chart: the bars that lead from A's time to B's, in drawing order. Pure.
import type { RegimeDelta } from "../report";

export interface Bar {
  readonly row: RegimeDelta;
  /** The running total before and after this regime, ns: the ends of the bar. */
  readonly before: number;
  readonly after: number;
}

export interface Waterfall {
  readonly bars: readonly Bar[]; // largest change first
  readonly empty: readonly RegimeDelta[]; // no time in A and B, in the server's order
  readonly longest: number; // the largest running total, ns; never 0
}

/** Shorter times are rounding errors of sums. */
const MIN_NS = 0.5;

export function waterfall(rows: readonly RegimeDelta[], a: number, b: number): Waterfall {
  const timed = rows.filter((row) => row.a_ns >= MIN_NS || row.b_ns >= MIN_NS);
  const sorted = [...timed].sort((one, other) => Math.abs(other.delta_ns) - Math.abs(one.delta_ns));
  let total = a;
  const bars = sorted.map((row): Bar => {
    const before = total;
    total += row.delta_ns;
    return { row, before, after: total };
  });
  const longest = Math.max(a, b, ...bars.map(({ after }) => after));
  return { bars, empty: rows.filter((row) => !timed.includes(row)), longest: longest > 0 ? longest : 1 };
}
