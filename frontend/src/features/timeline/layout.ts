// The vertical layout of the timeline: tracks below one another, their lanes by depth.
import type { Lane } from "../../shared/report";
import { words } from "../../shared/text/identifier";

export interface Row {
  readonly lane: number; // index in the response's lanes
  readonly top: number; // px
  readonly height: number;
}

export interface Track {
  readonly track: string;
  readonly group: string;
  readonly title: string;
  readonly top: number;
  readonly height: number;
  readonly rows: readonly Row[];
}

export const RULER = 26;
const GAP = 9;
const HEIGHTS: ReadonlyMap<string, number> = new Map([
  ["account", 26],
  ["steps", 18],
  ["device", 20],
  ["host", 15],
]);
const ORDER = ["steps", "account", "device", "host"];
const TITLES: ReadonlyMap<string, string> = new Map([
  ["account", "Time spent in"],
  ["steps", "Steps"],
]);

interface Layout {
  readonly tracks: readonly Track[];
  readonly height: number;
}

const MAX_STRETCH = 2; // a row higher than that shows no more

/**
 * The tracks from top to bottom and their total height. `above` is the space for a track's name above it. The rows are
 * stretched to fill `available` px.
 */
export function layout(lanes: readonly Lane[], above: number, available: number): Layout {
  const natural = placed(lanes, above, 1);
  const rows = natural.tracks.reduce((sum, track) => sum + track.height, 0);
  const stretch = Math.min((rows + available - natural.height) / rows, MAX_STRETCH);
  return stretch > 1 ? placed(lanes, above, stretch) : natural;
}

function placed(lanes: readonly Lane[], above: number, stretch: number): Layout {
  const byTrack = new Map<string, number[]>();
  lanes.forEach((lane, index) => {
    const indices = byTrack.get(lane.track);
    if (indices) indices.push(index);
    else byTrack.set(lane.track, [index]);
  });
  const ordered = [...byTrack.values()].sort((a, b) => rank(lanes[a[0]!]!) - rank(lanes[b[0]!]!));
  let top = RULER + 4;
  const tracks = ordered.map((indices) => {
    const { track, group, title } = lanes[indices[0]!]!;
    const height = Math.floor((HEIGHTS.get(group) ?? 16) * stretch);
    const begin = top + above;
    const rows = indices.map((lane) => ({ lane, top: begin + lanes[lane]!.depth * height, height: height - 1 }));
    const result = { track, group, title: titleOf(group, title), top: begin, height: indices.length * height, rows };
    top = begin + result.height + GAP;
    return result;
  });
  return { tracks, height: top };
}

const rank = ({ group }: Lane): number => (ORDER.indexOf(group) + ORDER.length + 1) % (ORDER.length + 1);

function titleOf(group: string, title: string): string {
  return TITLES.get(group) ?? (title || words(group));
}

/** The row at a vertical position, if there is one. */
export function rowAt(tracks: readonly Track[], y: number): { readonly track: Track; readonly row: Row } | undefined {
  for (const track of tracks) {
    const row = track.rows.find(({ top, height }) => y >= top && y < top + height + 1);
    if (row) return { track, row };
  }
  return undefined;
}
