// The times of the points as stacked areas per regime: useful device work at the bottom, lost time on top.
import { isLost } from "../../../shared/colours";
import type { RunPoint } from "../../../shared/report";

/** A regime below this share of the longest time at every point is drawn without a legend entry. */
const MIN_LEGEND_SHARE = 0.02;

export interface Area {
  readonly regime: string;
  readonly title: string;
  /** The lower and the upper end at each point, ns. */
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly inLegend: boolean;
}

export function areas(points: readonly RunPoint[]): readonly Area[] {
  const longest = Math.max(...points.map(({ ns }) => ns));
  const regimes = points.flatMap(({ by_regime }) => by_regime.filter(({ b_ns }) => b_ns > 0).map(({ regime }) => regime));
  const order = [...new Set(points[0]?.by_regime.map(({ regime }) => regime))].filter((regime) => regimes.includes(regime));
  let low: readonly number[] = points.map(() => 0);
  return [...order.filter((regime) => !isLost(regime)), ...order.filter(isLost)].map((regime): Area => {
    const rows = points.map(({ by_regime }) => by_regime.find((row) => row.regime === regime));
    const high = low.map((from, index) => from + Math.max(rows[index]?.b_ns ?? 0, 0));
    const area = {
      regime,
      title: rows[0]?.title || regime,
      low,
      high,
      inLegend: rows.some((row) => (row?.b_ns ?? 0) >= MIN_LEGEND_SHARE * longest),
    };
    low = high;
    return area;
  });
}

/** The parts of a point's bar, in the server's order of regimes. */
export const partsOf = ({ by_regime }: RunPoint) => by_regime.map(({ regime, title, b_ns }) => ({ regime, title: title || regime, ns: b_ns }));

/** The title of a regime in this response. */
export function regimeTitle(points: readonly RunPoint[], regime: string): string {
  return points[0]?.by_regime.find((row) => row.regime === regime)?.title || regime;
}
