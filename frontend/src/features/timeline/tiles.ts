// The timeline in tiles: level z divides the recording into 2^z tiles, each at the highest resolution that is drawn.
// Fetched tiles are cached. Visible tiles are fetched first, and requests for tiles that are no longer visible are cancelled.
import type { Lane, Timeline, TimelineAnswer } from "../../shared/report";
import { lengthOf, type Span } from "../../shared/run/viewport";
import { poll } from "../../shared/server/polling";
import type { Attempt } from "../../shared/server/result";

export const TILE_PIXELS = 512;
const DEEPEST = 40; // 2^40 tiles of a day are 0.1 µs each
const CACHE_SIZE = 160;
const MAX_REQUESTS = 3; // of the six connections that a browser opens to one server

/** The blocks of one lane in one tile, as columns; times in ns from the tile's `origin`. */
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

/** The level whose tiles have at least one point per pixel of the span. */
export function levelOf(span: Span, pixels: number, whole: Span): number {
  const level = Math.log2((lengthOf(whole) * pixels) / (lengthOf(span) * TILE_PIXELS));
  return Math.min(Math.max(Math.ceil(level), 0), DEEPEST);
}

/** The range of a tile. */
export function rangeOf(level: number, index: number, whole: Span): Span {
  const length = lengthOf(whole) / 2 ** level;
  return { begin: whole.begin + index * length, end: whole.begin + (index + 1) * length };
}

/** The first and the last tile of a level that overlap the span. */
export function overlapping(span: Span, level: number, whole: Span): readonly [number, number] {
  const length = lengthOf(whole) / 2 ** level;
  const last = 2 ** level - 1;
  const at = (time: number) => Math.min(Math.max(Math.floor((time - whole.begin) / length), 0), last);
  return [at(span.begin), at(span.end)];
}

type Request = (begin: number, end: number, pixels: number, signal: AbortSignal) => Promise<Attempt<TimelineAnswer>>;

export class Tiles {
  private readonly cache = new Map<string, Tile>();
  private readonly requests = new Map<string, AbortController>();
  private missing: readonly (readonly [number, number])[] = [];
  private closed = false;

  /** `onChange` is called after new tiles, failures (with the message) and the end of the last request. */
  constructor(
    private readonly whole: Span,
    overview: Timeline,
    private readonly request: Request,
    private readonly onChange: (problem?: string) => void,
  ) {
    this.cache.set("0/0", tileOf(overview, 0, 0, whole));
  }

  /** The tiles to draw for the span, left to right, at the best resolution in the cache. Requests the missing ones. */
  visible(span: Span, pixels: number): readonly { readonly tile: Tile; readonly part: Span }[] {
    const level = levelOf(span, pixels, this.whole);
    const [first, last] = overlapping(span, level, this.whole);
    const drawn = [];
    const missing: (readonly [number, number])[] = [];
    for (let index = first; index <= last; index++) {
      const exact = this.cache.get(`${level}/${index}`);
      if (!exact) missing.push([level, index]);
      drawn.push({ tile: exact ?? this.coarser(level, index), part: rangeOf(level, index, this.whole) });
    }
    // The neighbours are likely to be needed next.
    for (const neighbour of [last + 1, first - 1]) {
      if (neighbour >= 0 && neighbour < 2 ** level && !this.cache.has(`${level}/${neighbour}`)) missing.push([level, neighbour]);
    }
    this.requestMissing(missing);
    for (const { tile } of drawn) this.markUsed(tile);
    return drawn;
  }

  /** Returns true while tiles are requested. */
  get busy(): boolean {
    return this.requests.size > 0;
  }

  close(): void {
    this.closed = true;
    for (const controller of this.requests.values()) controller.abort();
  }

  private coarser(level: number, index: number): Tile {
    for (let up = 1; up <= level; up++) {
      const tile = this.cache.get(`${level - up}/${Math.floor(index / 2 ** up)}`);
      if (tile) return tile;
    }
    throw new Error("The overview is always in the cache.");
  }

  private markUsed(tile: Tile): void {
    const key = `${tile.level}/${tile.index}`;
    if (tile.level === 0) return;
    this.cache.delete(key);
    this.cache.set(key, tile);
  }

  private requestMissing(missing: readonly (readonly [number, number])[]): void {
    this.missing = missing;
    const keys = new Set(missing.map(([level, index]) => `${level}/${index}`));
    for (const [key, controller] of this.requests) if (!keys.has(key)) controller.abort();
    this.fetchNext();
  }

  private fetchNext(): void {
    for (const [level, index] of this.missing) {
      if (this.closed || this.requests.size >= MAX_REQUESTS) return;
      const key = `${level}/${index}`;
      if (!this.cache.has(key) && !this.requests.has(key)) void this.fetch(key, level, index);
    }
  }

  private async fetch(key: string, level: number, index: number): Promise<void> {
    const controller = new AbortController();
    this.requests.set(key, controller);
    const range = rangeOf(level, index, this.whole);
    const result = await poll(() => this.request(range.begin, range.end, TILE_PIXELS, controller.signal), controller.signal);
    this.requests.delete(key);
    if (this.closed) return;
    if (result.kind === "failed") {
      this.onChange(result.message); // the tile is requested again when the view moves
      return;
    }
    if (result.kind === "ok" && result.value.timeline) {
      this.store(key, tileOf(result.value.timeline, level, index, range));
      this.onChange();
    }
    this.fetchNext();
    // A cancelled request changes nothing that is drawn, but it may have been the last one.
    if (!this.busy) this.onChange();
  }

  private store(key: string, tile: Tile): void {
    this.cache.set(key, tile);
    for (const oldest of this.cache.keys()) {
      if (this.cache.size <= CACHE_SIZE) break;
      if (oldest !== "0/0") this.cache.delete(oldest);
    }
  }
}
