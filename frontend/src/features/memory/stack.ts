// The curve of the memory as stacked areas.
import type { MemoryCurve } from "../../shared/report";

export interface StackedArea {
  readonly kind: string;
  readonly title: string;
  /** The lower and the upper end at each time, bytes. */
  readonly low: readonly number[];
  readonly high: readonly number[];
}

/** The series, each on top of the one before. */
export function stacked({ times_ns, series }: MemoryCurve): readonly StackedArea[] {
  let low: readonly number[] = times_ns.map(() => 0);
  return series.map(({ kind, title, bytes }) => {
    const high = low.map((from, index) => from + Math.max(bytes[index] ?? 0, 0));
    const area = { kind, title, low, high };
    low = high;
    return area;
  });
}

/** The outline of an area whose values are constant between two times, and to the `end`. `x` and `y` give the place of a time and of bytes. */
export function outline({ low, high }: StackedArea, x: readonly number[], y: (bytes: number) => number, end: number): string {
  if (x.length === 0) return "";
  const upper = x.map((at, index) => (index === 0 ? `M${at} ${y(high[0]!)}` : `H${at}V${y(high[index]!)}`)).join("");
  const lower = [...x.keys()].reverse().map((index) => (index === 0 ? `H${x[0]}` : `H${x[index]}V${y(low[index - 1]!)}`)).join("");
  return `${upper}H${end}V${y(low[low.length - 1]!)}${lower}Z`;
}
