// The expected and the measured time per regime: rows of a table.
import type { Comparison, Expected, RegimeDelta } from "../../shared/report";

/** Regimes below this share of the longest of the three times have no row. */
const MIN_ROW_SHARE = 0.001;

export interface ExpectedRow {
  readonly row: RegimeDelta; // measured
  readonly expected_ns: number;
  readonly ratio: number; // A's time / expected time
  readonly measured: number; // A's time / B's time; 0 if one of them is 0
  readonly because: string;
}

/** The rows, ordered by A's time. */
export function expectedRows({ by_regime, a_ns, b_ns }: Comparison, expected: Expected): readonly ExpectedRow[] {
  const least = MIN_ROW_SHARE * Math.max(a_ns, b_ns, expected.b_ns);
  const rows = expected.by_regime.flatMap((prediction) => {
    const row = by_regime.find(({ regime }) => regime === prediction.regime);
    if (!row || Math.max(row.a_ns, row.b_ns, prediction.expected_ns) <= least) return [];
    const measured = row.a_ns > 0 && row.b_ns > 0 ? row.a_ns / row.b_ns : 0;
    return [{ row, expected_ns: prediction.expected_ns, ratio: prediction.ratio, measured, because: prediction.because }];
  });
  return rows.sort((one, other) => other.row.a_ns - one.row.a_ns || other.row.b_ns - one.row.b_ns);
}
