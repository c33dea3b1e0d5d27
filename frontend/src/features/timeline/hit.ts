// What lies under the pointer, and what is seen most of: looked up in the tiles that are drawn.
import type { Row, Track } from "./layout";
import type { Tile } from "./tiles";
import type { Span } from "../../shared/run/viewport";

/** One block of the timeline; several things where they are too short to be told apart. */
export interface Thing extends Span {
  readonly track: Track;
  readonly lane: number;
  readonly key: number;
  readonly name: string; // hostile text; empty where the key says it all
  readonly count: number;
  readonly busy: number; // share of its length
}

export type Seen = readonly { readonly tile: Tile; readonly part: Span }[];

function thingAt(tile: Tile, track: Track, lane: number, at: number): Thing {
  const strip = tile.strips[lane]!;
  const begin = tile.origin + strip.begin[at]!;
  return {
    track,
    lane,
    begin,
    end: begin + strip.length[at]!,
    key: strip.key[at]!,
    name: tile.names[strip.name[at]!] ?? "",
    count: strip.count[at]!,
    busy: strip.busy[at]!,
  };
}

/** The thing at a time in a row, or the nearest within `reach` ns. */
export function find(seen: Seen, track: Track, { lane }: Row, time: number, reach: number): Thing | undefined {
  const drawn = seen.find(({ part }) => time >= part.begin && time < part.end) ?? seen[seen.length - 1];
  const strip = drawn?.tile.strips[lane];
  if (!drawn || !strip) return undefined;
  const at = time - drawn.tile.origin;
  // Things of a lane do not overlap, so only those next to this time can be meant.
  const before = lastBefore(strip.begin, at);
  let best: number | undefined;
  let nearest = reach;
  for (const index of [before, before + 1, before - 1]) {
    if (index < 0 || index >= strip.begin.length) continue;
    const begin = strip.begin[index]!;
    const away = Math.max(begin - at, at - begin - strip.length[index]!, 0);
    if (away < nearest || (away === 0 && best === undefined)) [best, nearest] = [index, away];
  }
  return best === undefined ? undefined : thingAt(drawn.tile, track, lane, best);
}

/** Position of the last number that is not above the value; -1 where all are. The numbers never fall. */
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

/** What takes most of a track's time in the span, by name and key, the most first. */
export function most(seen: Seen, track: Track, span: Span, limit: number): readonly (Thing & { readonly time: number })[] {
  const found = new Map<string, Thing & { time: number }>();
  for (const { tile, part } of seen) {
    const [from, to] = [Math.max(part.begin, span.begin), Math.min(part.end, span.end)];
    for (const { lane } of track.rows) {
      const strip = tile.strips[lane];
      for (let index = 0; strip && index < strip.begin.length; index++) {
        const thing = thingAt(tile, track, lane, index);
        const time = (Math.min(thing.end, to) - Math.max(thing.begin, from)) * thing.busy;
        if (time <= 0) continue;
        const known = found.get(`${thing.key} ${thing.name}`);
        if (known) known.time += time;
        else found.set(`${thing.key} ${thing.name}`, { ...thing, time });
      }
    }
  }
  return [...found.values()].sort((a, b) => b.time - a.time).slice(0, limit);
}
