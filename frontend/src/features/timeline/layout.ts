// Where each lane of the timeline is drawn: tracks under one another, their lanes by depth.
import { words } from "../../shared/text/names";
import type { Lane } from "../../shared/report";

export interface Row {
  readonly lane: number; // position among the answer's lanes
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
  ["python", 14],
]);
const ORDER = ["steps", "account", "device", "host", "python"];
const TITLES: ReadonlyMap<string, string> = new Map([
  ["account", "Who owns the time"],
  ["steps", "Steps"],
]);

/** The tracks from top to bottom, and the height of them all. `above` is room for each track's name over it. */
export function layout(lanes: readonly Lane[], above: number): { readonly tracks: readonly Track[]; readonly height: number } {
  const byTrack = new Map<string, number[]>();
  lanes.forEach((lane, place) => {
    const mine = byTrack.get(lane.track);
    if (mine) mine.push(place);
    else byTrack.set(lane.track, [place]);
  });
  const ordered = [...byTrack.values()].sort((a, b) => rank(lanes[a[0]!]!) - rank(lanes[b[0]!]!));
  let top = RULER + 4;
  const tracks = ordered.map((places) => {
    const { track, group, title } = lanes[places[0]!]!;
    const height = HEIGHTS.get(group) ?? 16;
    const begin = top + above;
    const rows = places.map((lane) => ({ lane, top: begin + lanes[lane]!.depth * height, height: height - 1 }));
    const found = { track, group, title: titleOf(group, title), top: begin, height: places.length * height, rows };
    top = begin + found.height + GAP;
    return found;
  });
  return { tracks, height: top };
}

const rank = ({ group }: Lane): number => (ORDER.indexOf(group) + ORDER.length + 1) % (ORDER.length + 1);

function titleOf(group: string, title: string): string {
  return TITLES.get(group) ?? (group === "python" ? `Python, ${title}` : title || words(group));
}

/** The row at a height, if there is one. */
export function rowAt(tracks: readonly Track[], y: number): { readonly track: Track; readonly row: Row } | undefined {
  for (const track of tracks) {
    const row = track.rows.find(({ top, height }) => y >= top && y < top + height + 1);
    if (row) return { track, row };
  }
  return undefined;
}
