// What a device promised, beside what was measured: rows of a table.
import type { Comparison, Expected, RegimeDelta } from "../../shared/report";

/** Regimes that stay below this share of the longer time, expected or measured, have no row. */
const WORTH_A_ROW = 0.001;

export interface PromisedRow {
  readonly row: RegimeDelta; // measured
  readonly expected_ns: number;
  readonly ratio: number; // A's time / expected time
  readonly measured: number; // A's time / B's time; 0 where either is none
  readonly because: string;
}

/** The regimes with time worth a row, those with most of A's time first. */
export function promisedRows({ by_regime, a_ns, b_ns }: Comparison, expected: Expected): readonly PromisedRow[] {
  const least = WORTH_A_ROW * Math.max(a_ns, b_ns, expected.b_ns);
  const found = expected.by_regime.flatMap((promise) => {
    const row = by_regime.find(({ regime }) => regime === promise.regime);
    if (!row || Math.max(row.a_ns, row.b_ns, promise.expected_ns) <= least) return [];
    const measured = row.a_ns > 0 && row.b_ns > 0 ? row.a_ns / row.b_ns : 0;
    return [{ row, expected_ns: promise.expected_ns, ratio: promise.ratio, measured, because: promise.because }];
  });
  return found.sort((one, other) => other.row.a_ns - one.row.a_ns || other.row.b_ns - one.row.b_ns);
}
