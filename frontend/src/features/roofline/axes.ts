// The two logarithmic axes of a roofline. Pure.
import type { Roofline } from "../../shared/report";

export interface Axes {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly x: (intensity: number) => number;
  readonly y: (flops: number) => number;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
}

const LEFT = 92;
const RIGHT = 8;
const TOP = 18;
const BOTTOM = 42;

/** Axes over whole powers of ten that include all points, ridges and roofs. */
export function axes({ points, roofs, bandwidth }: Roofline, width: number, height: number): Axes {
  const ridges = roofs.map(({ flops_per_s }) => flops_per_s / bandwidth);
  const [x0, x1] = powers([...points.map(({ intensity }) => intensity), ...ridges.map((ridge) => ridge * 2)]);
  const [y0, y1] = powers([...points.map(({ flops_per_s }) => flops_per_s), ...roofs.map(({ flops_per_s }) => flops_per_s * 1.3)]);
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  return {
    left: LEFT,
    right,
    top: TOP,
    bottom,
    x: (value) => LEFT + ((Math.log10(value) - x0) / (x1 - x0)) * (right - LEFT),
    y: (value) => bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (bottom - TOP),
    xTicks: between(x0, x1),
    yTicks: between(y0, y1),
  };
}

function powers(values: readonly number[]): readonly [number, number] {
  const logs = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const low = Math.floor(Math.min(...logs));
  return [low, Math.max(Math.ceil(Math.max(...logs)), low + 1)];
}

function between(low: number, high: number): readonly number[] {
  return Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
}

/** The roof as an SVG path: it rises with the bandwidth and is flat at the peak. */
export function path({ x, y, left, right, bottom }: Axes, bandwidth: number, peak: number): string {
  const invert = (pixel: number, from: (value: number) => number): number => {
    const [atOne, atTen] = [from(1), from(10)];
    return 10 ** ((pixel - atOne) / (atTen - atOne));
  };
  const lowest = Math.max(invert(left, x), invert(bottom, y) / bandwidth);
  return `M${x(lowest)} ${y(lowest * bandwidth)}L${x(peak / bandwidth)} ${y(peak)}H${right}`;
}
