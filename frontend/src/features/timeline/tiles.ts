// The timeline in tiles: level z cuts the recording into 2^z of them, each as dense as it is ever drawn. What was
// fetched is kept; what is seen is fetched first, the newest wish before older ones, and wishes of the past are dropped.
import type { Settled } from "../../shared/server/api";
import type { Lane, Timeline, TimelineAnswer } from "../../shared/report";
import { lengthOf, type Span } from "../../shared/run/viewport";

export const TILE_PIXELS = 512;
const DEEPEST = 40; // 2^40 tiles of a day are 0.1 µs each
const KEPT = 160;
const AT_ONCE = 3; // of the six connections that a browser has to one server

/** What is drawn of one lane of one tile, as columns of numbers; times in ns from the tile's `origin`. */
export interface Strip {
  readonly begin: Float64Array;
  readonly length: Float64Array;
  readonly key: Int32Array;
  readonly name: Int32Array;
  readonly count: Int32Array;
  readonly busy: Float32Array;
}

export interface Tile extends Span {
  readonly level: number;
  readonly index: number;
  readonly origin: number;
  readonly strips: readonly Strip[];
  readonly names: readonly string[];
}

export function tileOf(answer: Timeline, level: number, index: number, { begin, end }: Span): Tile {
  return { level, index, begin, end, origin: answer.begin_ns, strips: answer.lanes.map(stripOf), names: answer.names };
}

function stripOf(lane: Lane): Strip {
  return {
    begin: Float64Array.from(lane.begin_ns),
    length: Float64Array.from(lane.length_ns),
    key: Int32Array.from(lane.key),
    name: Int32Array.from(lane.name),
    count: Int32Array.from(lane.count),
    busy: Float32Array.from(lane.busy),
  };
}

/** The level whose tiles have a point for each pixel that the span is drawn on. */
export function levelOf(span: Span, pixels: number, whole: Span): number {
  const wanted = Math.log2((lengthOf(whole) * pixels) / (lengthOf(span) * TILE_PIXELS));
  return Math.min(Math.max(Math.ceil(wanted), 0), DEEPEST);
}

/** Where a tile lies. */
export function placeOf(level: number, index: number, whole: Span): Span {
  const length = lengthOf(whole) / 2 ** level;
  return { begin: whole.begin + index * length, end: whole.begin + (index + 1) * length };
}

/** The tiles of a level that the span touches, first and last. */
export function touched(span: Span, level: number, whole: Span): readonly [number, number] {
  const length = lengthOf(whole) / 2 ** level;
  const last = 2 ** level - 1;
  const at = (time: number) => Math.min(Math.max(Math.floor((time - whole.begin) / length), 0), last);
  return [at(span.begin), at(span.end)];
}

type Ask = (begin: number, end: number, pixels: number, signal: AbortSignal) => Promise<Settled<TimelineAnswer>>;

export class Tiles {
  private readonly kept = new Map<string, Tile>();
  private readonly asked = new Map<string, AbortController>();
  private wished: readonly (readonly [number, number])[] = [];
  private closed = false;

  constructor(
    private readonly whole: Span,
    overview: Timeline,
    private readonly ask: Ask,
    private readonly changed: (problem?: string) => void,
  ) {
    this.kept.set("0/0", tileOf(overview, 0, 0, whole));
  }

  /** What there is to draw of the span, left to right: each part as dense as it has been fetched. Asks for the rest. */
  seen(span: Span, pixels: number): readonly { readonly tile: Tile; readonly part: Span }[] {
    const level = levelOf(span, pixels, this.whole);
    const [first, last] = touched(span, level, this.whole);
    const drawn = [];
    const missing: (readonly [number, number])[] = [];
    for (let index = first; index <= last; index++) {
      const exact = this.kept.get(`${level}/${index}`);
      if (!exact) missing.push([level, index]);
      drawn.push({ tile: exact ?? this.coarser(level, index), part: placeOf(level, index, this.whole) });
    }
    // What lies beside is likely to be wanted next.
    for (const beside of [last + 1, first - 1]) {
      if (beside >= 0 && beside < 2 ** level && !this.kept.has(`${level}/${beside}`)) missing.push([level, beside]);
    }
    this.wish(missing);
    for (const { tile } of drawn) this.touch(tile);
    return drawn;
  }

  /** Whether something is still to come. `changed` is told when it is there. */
  get busy(): boolean {
    return this.asked.size > 0;
  }

  close(): void {
    this.closed = true;
    for (const asked of this.asked.values()) asked.abort();
  }

  private coarser(level: number, index: number): Tile {
    for (let up = 1; up <= level; up++) {
      const found = this.kept.get(`${level - up}/${Math.floor(index / 2 ** up)}`);
      if (found) return found;
    }
    throw new Error("The overview is always kept.");
  }

  private touch(tile: Tile): void {
    const key = `${tile.level}/${tile.index}`;
    if (tile.level === 0) return;
    this.kept.delete(key);
    this.kept.set(key, tile);
  }

  private wish(missing: readonly (readonly [number, number])[]): void {
    this.wished = missing;
    const wanted = new Set(missing.map(([level, index]) => `${level}/${index}`));
    for (const [key, asked] of this.asked) if (!wanted.has(key)) asked.abort();
    this.fetchNext();
  }

  private fetchNext(): void {
    for (const [level, index] of this.wished) {
      if (this.closed || this.asked.size >= AT_ONCE) return;
      const key = `${level}/${index}`;
      if (!this.kept.has(key) && !this.asked.has(key)) void this.fetch(key, level, index);
    }
  }

  private async fetch(key: string, level: number, index: number): Promise<void> {
    const leaving = new AbortController();
    this.asked.set(key, leaving);
    const place = placeOf(level, index, this.whole);
    const answer = await this.ask(place.begin, place.end, TILE_PIXELS, leaving.signal);
    this.asked.delete(key);
    if (this.closed) return;
    if (answer.kind === "ok" && answer.value.timeline) {
      this.keep(key, tileOf(answer.value.timeline, level, index, place));
      this.changed();
    } else if (answer.kind === "failed") {
      this.changed(answer.message);
      return; // asked for again when the view moves
    }
    this.fetchNext();
    this.tellRest();
  }

  /** What was called off changes no picture, but it may have been the last that was awaited. */
  private tellRest(): void {
    if (!this.busy && !this.closed) this.changed();
  }

  private keep(key: string, tile: Tile): void {
    this.kept.set(key, tile);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      if (oldest !== "0/0") this.kept.delete(oldest);
    }
  }
}
