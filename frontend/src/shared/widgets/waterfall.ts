// From A's time to B's: where each regime's bar begins and ends, in the order in which they are drawn.
import type { RegimeDelta } from "../report";

export interface Bar {
  readonly row: RegimeDelta;
  /** Where the running total is before and after this regime, and the bar's ends, in ns from nothing. */
  readonly before: number;
  readonly after: number;
}

export interface Waterfall {
  readonly bars: readonly Bar[]; // largest change first
  readonly empty: readonly RegimeDelta[]; // no time on either side, in the server's order
  readonly longest: number; // the furthest that any bar reaches, ns; never 0
}

/** Less is what sums of doubles leave over. */
const LEAST_NS = 0.5;

export function waterfall(rows: readonly RegimeDelta[], a: number, b: number): Waterfall {
  const timed = rows.filter((row) => row.a_ns >= LEAST_NS || row.b_ns >= LEAST_NS);
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

