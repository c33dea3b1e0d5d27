// The axes of a sweep's chart. Pure.

/** The minimum distance of two points, as a share of the axis. */
const MIN_DISTANCE = 0.06;
const NICE = [1, 2, 5, 10];

export interface Placement {
  readonly kind: "linear" | "logarithmic" | "even"; // even: equal distances
  readonly at: readonly number[]; // 0 to 1
}

/** Places the values on a linear axis if they are far enough apart, else on a logarithmic one, else at equal distances. */
export function placeValues(values: readonly number[]): Placement {
  const linear = spread(values);
  if (isReadable(linear)) return { kind: "linear", at: linear };
  const logarithmic = spread(values.map(Math.log));
  if (isReadable(logarithmic)) return { kind: "logarithmic", at: logarithmic };
  return { kind: "even", at: spread(values.map((_, index) => index)) };
}

function spread(values: readonly number[]): readonly number[] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => (high > low ? (value - low) / (high - low) : 0.5));
}

/** Returns true if all positions are finite and far enough from the previous one. */
function isReadable(at: readonly number[]): boolean {
  return at.every((here, index) => Number.isFinite(here) && (index === 0 || here - at[index - 1]! >= MIN_DISTANCE));
}

/** Round times from 0 to the highest one, about `count` of them. */
export function ticks(highest: number, count: number): readonly number[] {
  if (!(highest > 0) || !Number.isFinite(highest)) return [0];
  const rough = highest / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (NICE.find((nice) => nice * power >= rough) ?? 10);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, index) => index * step);
}
