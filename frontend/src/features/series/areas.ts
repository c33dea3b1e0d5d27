// The time of each point cut into regimes, one upon the other: what the device works at below, what is lost on top.
import { isLost } from "../../shared/colours";
import type { RunPoint } from "../../shared/report";

/** A regime that nowhere reaches this share of the longest time is drawn, and not named. */
const WORTH_A_NAME = 0.02;

export interface Area {
  readonly regime: string;
  readonly title: string;
  /** Its lower and upper end at each point, ns. */
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly named: boolean;
}

export function areas(points: readonly RunPoint[]): readonly Area[] {
  const longest = Math.max(...points.map(({ ns }) => ns));
  const regimes = points.flatMap(({ by_regime }) => by_regime.filter(({ b_ns }) => b_ns > 0).map(({ regime }) => regime));
  const order = [...new Set(points[0]?.by_regime.map(({ regime }) => regime))].filter((regime) => regimes.includes(regime));
  let low: readonly number[] = points.map(() => 0);
  return [...order.filter((regime) => !isLost(regime)), ...order.filter(isLost)].map((regime): Area => {
    const rows = points.map(({ by_regime }) => by_regime.find((row) => row.regime === regime));
    const high = low.map((from, place) => from + Math.max(rows[place]?.b_ns ?? 0, 0));
    const area = {
      regime,
      title: rows[0]?.title || regime,
      low,
      high,
      named: rows.some((row) => (row?.b_ns ?? 0) >= WORTH_A_NAME * longest),
    };
    low = high;
    return area;
  });
}

/** The parts of a point's bar, in the server's order of regimes. */
export const partsOf = ({ by_regime }: RunPoint) => by_regime.map(({ regime, title, b_ns }) => ({ regime, title: title || regime, ns: b_ns }));

/** What a regime is called in this answer. */
export function regimeTitle(points: readonly RunPoint[], regime: string): string {
  return points[0]?.by_regime.find((row) => row.regime === regime)?.title || regime;
}
