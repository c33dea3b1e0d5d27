// The stretches of a run as a band: who owned the time when, with gaps where nothing is known. Pure.
import type { Phase } from "../../shared/report";

export interface Part {
  readonly length: number; // ns
  readonly stretch: Phase | undefined; // undefined: a gap
}

/** From the first stretch's beginning to the last one's end; the server gives them in order of time. */
export function partsOf(stretches: readonly Phase[]): readonly Part[] {
  const parts: Part[] = [];
  let at = stretches[0]?.begin_ns ?? 0;
  for (const stretch of stretches) {
    if (stretch.begin_ns > at) parts.push({ length: stretch.begin_ns - at, stretch: undefined });
    const from = Math.max(at, stretch.begin_ns);
    if (stretch.end_ns > from) parts.push({ length: stretch.end_ns - from, stretch });
    at = Math.max(at, stretch.end_ns);
  }
  return parts;
}

/** Whether something could be had back in it. */
const isLoss = ({ severity }: Phase): boolean => severity !== "none";

/** The stretches to list: all where they are few, else those that lost most, in order of time. */
export function listed(stretches: readonly Phase[], most: number): readonly Phase[] {
  if (stretches.length <= most) return stretches;
  const lost = (one: Phase): number => (isLoss(one) ? one.share * (one.end_ns - one.begin_ns) : 0);
  const dearest = new Set([...stretches].sort((a, b) => lost(b) - lost(a)).slice(0, most));
  return stretches.filter((one) => dearest.has(one));
}
