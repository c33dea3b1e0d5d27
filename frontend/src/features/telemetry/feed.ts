// The telemetry of one recording as it is asked for: all of it once, then only what was added, and a stretch in detail
// where somebody looks closer than what is known.
import type { Answer, Between } from "../../shared/server/api";
import type { TelemetryAnswer } from "../../shared/report";
import { ADDED, lastOf, longestOf, spliced } from "./splice";

/** Points of each series in an answer: about twice what a chart has pixels, since each bucket is a low and a high one. */
export const POINTS = 1_000;
const MOST_ROWS = 6 * POINTS; // then all of it is asked for anew, and what was detailed is thin again
const OVERLAP_NS = 15e9; // series are written by the packet, and one may come later than another
const MARGIN = 0.5; // of a stretch, on either side of it: so that a step aside is there already

type Ask = (points: number, between: Between, signal: AbortSignal) => Promise<Answer<TelemetryAnswer>>;

/** A stretch that is known as densely as `step` ns between points; 0 where every row is known. */
interface Known {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

export class Feed {
  private answer: TelemetryAnswer | undefined;
  private known: readonly Known[] = [];

  constructor(private readonly ask: Ask) {}

  /** What there is now, once it was asked for. */
  get now(): TelemetryAnswer | undefined {
    return this.answer;
  }

  /** Asks for what is new. */
  async grow(signal: AbortSignal): Promise<Answer<TelemetryAnswer>> {
    const last = this.answer && longestOf(this.answer) < MOST_ROWS ? lastOf(this.answer) : undefined;
    if (!this.answer || last === undefined) return this.begin(signal);
    const found = await this.ask(POINTS, { since: last - OVERLAP_NS }, signal);
    if (found.kind !== "ok" || signal.aborted) return found;
    if (longestOf(found.value) >= POINTS) return this.begin(signal); // thinned: too long ago to be added row by row
    const before = this.answer;
    this.answer = spliced(before, found.value, ADDED);
    const to = lastOf(this.answer) ?? last;
    const grown = this.known.find((one) => one.step === 0 && one.to === last);
    this.known = [...this.known.filter((one) => one !== grown), { from: grown?.from ?? last, to, step: 0 }];
    return { kind: "ok", value: this.answer };
  }

  /** Whether a stretch (ns since 1970) is known as well as a chart can show it. */
  isFine(from: number, to: number): boolean {
    const enough = ((to - from) / POINTS) * 1.01;
    // Neighbours that are both fine enough make one.
    let reached = from;
    for (const one of [...this.known].sort((a, b) => a.from - b.from)) {
      if (one.step <= enough && one.from <= reached) reached = Math.max(reached, one.to);
    }
    return reached >= Math.min(to, lastOf(this.answer ?? EMPTY) ?? to);
  }

  /** Asks for a stretch in detail. */
  async detail(from: number, to: number, signal: AbortSignal): Promise<Answer<TelemetryAnswer>> {
    const margin = (to - from) * MARGIN;
    const [since, until] = [from - margin, to + margin];
    const points = Math.ceil(POINTS * (1 + 2 * MARGIN));
    const found = await this.ask(points, { since, until }, signal);
    if (found.kind !== "ok" || signal.aborted || !this.answer) return found;
    this.answer = spliced(this.answer, found.value, { from: since, to: until });
    this.known = [...this.known, { from: since, to: until, step: longestOf(found.value) < points ? 0 : (until - since) / points }];
    return { kind: "ok", value: this.answer };
  }

  private async begin(signal: AbortSignal): Promise<Answer<TelemetryAnswer>> {
    const found = await this.ask(POINTS, {}, signal);
    if (found.kind !== "ok" || signal.aborted) return found;
    this.answer = found.value;
    const last = lastOf(found.value) ?? 0;
    const first = firstOf(found.value) ?? last;
    this.known = [{ from: -Infinity, to: last, step: longestOf(found.value) < POINTS ? 0 : (last - first) / POINTS }];
    return found;
  }
}

function firstOf({ series, steps }: TelemetryAnswer): number | undefined {
  const first = Math.min(Infinity, ...[...series.map(({ unix_ns }) => unix_ns), steps?.end_unix_ns ?? []].map((times) => times[0] ?? Infinity));
  return Number.isFinite(first) ? first : undefined;
}

const EMPTY = { series: [] } as unknown as TelemetryAnswer;
