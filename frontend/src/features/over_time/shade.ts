// How dark a cell of the heat map is.

/** From 0.12 (half as bad as usual, or better) over 0.4 (usual) to 1 (twice as bad). */
export function shade(value: number, usual: number, large: boolean): number {
  if (value <= 0 || usual <= 0) return 0.04;
  const ratio = large ? value / usual : usual / value;
  return Math.min(Math.max(0.4 + 0.6 * (ratio - 1), 0.12), 1);
}
