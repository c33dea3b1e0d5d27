// Where the points of a sweep stand: along what varies, and up with the time. Pure.

/** Points nearer to one another than this share of the axis cannot be told apart. */
const CROWDED = 0.06;
const NICE = [1, 2, 5, 10];

export interface Placed {
  readonly kind: "linear" | "logarithmic" | "even"; // even: in their order, whatever lies between them
  readonly at: readonly number[]; // 0 to 1
}

/** Along a line of their own spacing where that can be read, else by powers, else at equal distances. */
export function placed(values: readonly number[]): Placed {
  const linear = spread(values);
  if (told(linear)) return { kind: "linear", at: linear };
  const logarithmic = spread(values.map(Math.log));
  if (told(logarithmic)) return { kind: "logarithmic", at: logarithmic };
  return { kind: "even", at: spread(values.map((_, place) => place)) };
}

function spread(values: readonly number[]): readonly number[] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.map((value) => (high > low ? (value - low) / (high - low) : 0.5));
}

/** Whether each stands clear of the one before it; of numbers that are none, none does. */
function told(at: readonly number[]): boolean {
  return at.every((here, place) => Number.isFinite(here) && (place === 0 || here - at[place - 1]! >= CROWDED));
}

/** Round times from nothing to the highest, about as many as asked for. */
export function ticks(highest: number, about: number): readonly number[] {
  if (!(highest > 0) || !Number.isFinite(highest)) return [0];
  const rough = highest / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (NICE.find((one) => one * power >= rough) ?? 10);
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, index) => index * step);
}
