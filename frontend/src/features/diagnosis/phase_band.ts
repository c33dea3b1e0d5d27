// The phases of a run as a band: which regime owned the time when, with gaps where there is no data. Pure.
import type { Phase } from "../../shared/report";

export interface Segment {
  readonly length: number; // ns
  readonly phase: Phase | undefined; // undefined: a gap
}

/** The segments from the start of the first phase to the end of the last one. The server sends them in order of time. */
export function segmentsOf(phases: readonly Phase[]): readonly Segment[] {
  const segments: Segment[] = [];
  let at = phases[0]?.begin_ns ?? 0;
  for (const phase of phases) {
    if (phase.begin_ns > at) segments.push({ length: phase.begin_ns - at, phase: undefined });
    const from = Math.max(at, phase.begin_ns);
    if (phase.end_ns > from) segments.push({ length: phase.end_ns - from, phase });
    at = Math.max(at, phase.end_ns);
  }
  return segments;
}

/** Returns true if time was lost in the phase. */
const isLoss = ({ severity }: Phase): boolean => severity !== "none";

/** At most `limit` phases, in order of time: those with the most lost time. */
export function costliest(phases: readonly Phase[], limit: number): readonly Phase[] {
  if (phases.length <= limit) return phases;
  const lostTime = (phase: Phase): number => (isLoss(phase) ? phase.share * (phase.end_ns - phase.begin_ns) : 0);
  const listed = new Set([...phases].sort((a, b) => lostTime(b) - lostTime(a)).slice(0, limit));
  return phases.filter((phase) => listed.has(phase));
}
