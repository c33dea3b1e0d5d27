// Loads the telemetry of one recording: all of it once, then only new samples, and a range in detail when the user
// zooms in further than the resolution of the loaded data.
import type { TelemetryAnswer } from "../../shared/report";
import type { TimeRange } from "../../shared/server/api";
import type { Result } from "../../shared/server/result";
import { APPENDED, lastOf, longestOf, merged } from "./merge";

/** Points of each series in a response: about twice the pixels of a chart, because each bucket has a minimum and a maximum. */
export const POINTS = 1_000;
const MAX_ROWS = 6 * POINTS; // beyond that everything is loaded again, without the detailed ranges
const OVERLAP_NS = 15e9; // series are written in packets, and some arrive later than others
const MARGIN = 0.5; // of a range, loaded on both sides of it, so that small moves need no request

type Request = (points: number, range: TimeRange, signal: AbortSignal) => Promise<Result<TelemetryAnswer>>;

/** A loaded range with `step` ns between points; 0 if every row was loaded. */
interface Loaded {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

export class Feed {
  private data: TelemetryAnswer | undefined;
  private loaded: readonly Loaded[] = [];

  constructor(private readonly request: Request) {}

  /** The loaded telemetry, after the first request. */
  get current(): TelemetryAnswer | undefined {
    return this.data;
  }

  /** Loads new samples. */
  async update(signal: AbortSignal): Promise<Result<TelemetryAnswer>> {
    const last = this.data && longestOf(this.data) < MAX_ROWS ? lastOf(this.data) : undefined;
    if (!this.data || last === undefined) return this.reload(signal);
    const result = await this.request(POINTS, { since: last - OVERLAP_NS }, signal);
    if (result.kind !== "ok" || signal.aborted) return result;
    if (longestOf(result.value) >= POINTS) return this.reload(signal); // downsampled: too much is new to append row by row
    const before = this.data;
    this.data = merged(before, result.value, APPENDED);
    const to = lastOf(this.data) ?? last;
    const grown = this.loaded.find((range) => range.step === 0 && range.to === last);
    this.loaded = [...this.loaded.filter((range) => range !== grown), { from: grown?.from ?? last, to, step: 0 }];
    return { kind: "ok", value: this.data };
  }

  /** Returns true if a range (ns since 1970) is loaded at the resolution of a chart. */
  isDetailed(from: number, to: number): boolean {
    const maxStep = ((to - from) / POINTS) * 1.01;
    // Adjacent ranges at this resolution count as one.
    let reached = from;
    for (const range of [...this.loaded].sort((a, b) => a.from - b.from)) {
      if (range.step <= maxStep && range.from <= reached) reached = Math.max(reached, range.to);
    }
    return reached >= Math.min(to, lastOf(this.data ?? EMPTY) ?? to);
  }

  /** Loads a range in detail. */
  async loadDetail(from: number, to: number, signal: AbortSignal): Promise<Result<TelemetryAnswer>> {
    const margin = (to - from) * MARGIN;
    const [since, until] = [from - margin, to + margin];
    const points = Math.ceil(POINTS * (1 + 2 * MARGIN));
    const result = await this.request(points, { since, until }, signal);
    if (result.kind !== "ok" || signal.aborted || !this.data) return result;
    this.data = merged(this.data, result.value, { from: since, to: until });
    this.loaded = [...this.loaded, { from: since, to: until, step: longestOf(result.value) < points ? 0 : (until - since) / points }];
    return { kind: "ok", value: this.data };
  }

  private async reload(signal: AbortSignal): Promise<Result<TelemetryAnswer>> {
    const result = await this.request(POINTS, {}, signal);
    if (result.kind !== "ok" || signal.aborted) return result;
    this.data = result.value;
    const last = lastOf(result.value) ?? 0;
    const first = firstOf(result.value) ?? last;
    this.loaded = [{ from: -Infinity, to: last, step: longestOf(result.value) < POINTS ? 0 : (last - first) / POINTS }];
    return result;
  }
}

function firstOf({ series, steps }: TelemetryAnswer): number | undefined {
  const first = Math.min(Infinity, ...[...series.map(({ unix_ns }) => unix_ns), steps?.end_unix_ns ?? []].map((times) => times[0] ?? Infinity));
  return Number.isFinite(first) ? first : undefined;
}

const EMPTY = { series: [] } as unknown as TelemetryAnswer;
