// Finds blocks in the drawn tiles: the one under the pointer, and those with the most time.
import type { Span } from "../../shared/run/viewport";
import type { Row, Track } from "./layout";
import type { Tile } from "./tiles";

/** A block of the timeline. Events that are too short to be drawn separately are merged into one. */
export interface Block extends Span {
  readonly track: Track;
  readonly lane: number;
  readonly key: number;
  readonly name: string; // untrusted text; empty if the key is the name
  readonly count: number;
  readonly busy: number; // share of its length
}

/** The tiles that cover the visible range, from left to right, and the part that each of them covers. */
export type VisibleTiles = readonly { readonly tile: Tile; readonly part: Span }[];

function blockAt(tile: Tile, track: Track, lane: number, index: number): Block {
  const strip = tile.strips[lane]!;
  const begin = tile.origin + strip.begin[index]!;
  return {
    track,
    lane,
    begin,
    end: begin + strip.length[index]!,
    key: strip.key[index]!,
    name: tile.names[strip.name[index]!] ?? "",
    count: strip.count[index]!,
    busy: strip.busy[index]!,
  };
}

/** The block at a time in a row, or the nearest one within `reach` ns. */
export function find(tiles: VisibleTiles, track: Track, { lane }: Row, time: number, reach: number): Block | undefined {
  const drawn = tiles.find(({ part }) => time >= part.begin && time < part.end) ?? tiles[tiles.length - 1];
  const strip = drawn?.tile.strips[lane];
  if (!drawn || !strip) return undefined;
  const at = time - drawn.tile.origin;
  // The blocks of a lane do not overlap, so only those next to this time are candidates.
  const before = lastBefore(strip.begin, at);
  let best: number | undefined;
  let nearest = reach;
  for (const index of [before, before + 1, before - 1]) {
    if (index < 0 || index >= strip.begin.length) continue;
    const begin = strip.begin[index]!;
    const distance = Math.max(begin - at, at - begin - strip.length[index]!, 0);
    if (distance < nearest || (distance === 0 && best === undefined)) [best, nearest] = [index, distance];
  }
  return best === undefined ? undefined : blockAt(drawn.tile, track, lane, best);
}

/** The index of the last number that is not above the value, or -1. The numbers are sorted. */
export function lastBefore(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The blocks with the most time of a track in the span, merged by name and key, largest first. */
export function largest(tiles: VisibleTiles, track: Track, span: Span, limit: number): readonly (Block & { readonly time: number })[] {
  const byName = new Map<string, Block & { time: number }>();
  for (const { tile, part } of tiles) {
    const [from, to] = [Math.max(part.begin, span.begin), Math.min(part.end, span.end)];
    for (const { lane } of track.rows) {
      const strip = tile.strips[lane];
      for (let index = 0; strip && index < strip.begin.length; index++) {
        const block = blockAt(tile, track, lane, index);
        const time = (Math.min(block.end, to) - Math.max(block.begin, from)) * block.busy;
        if (time <= 0) continue;
        const earlier = byName.get(`${block.key} ${block.name}`);
        if (earlier) earlier.time += time;
        else byName.set(`${block.key} ${block.name}`, { ...block, time });
      }
    }
  }
  return [...byName.values()].sort((a, b) => b.time - a.time).slice(0, limit);
}
