// The curve of the memory as stacked areas, and the bytes per category, module and line.
import type { MemoryCurve, MemorySite } from "../../shared/report";

export interface StackedArea {
  readonly kind: string;
  readonly title: string;
  /** The lower and the upper end at each time, bytes. */
  readonly low: readonly number[];
  readonly high: readonly number[];
}

/** The series, each on top of the one before. */
export function stacked({ times_ns, series }: MemoryCurve): readonly StackedArea[] {
  let low: readonly number[] = times_ns.map(() => 0);
  return series.map(({ kind, title, bytes }) => {
    const high = low.map((from, index) => from + Math.max(bytes[index] ?? 0, 0));
    const area = { kind, title, low, high };
    low = high;
    return area;
  });
}

/** The outline of an area whose values are constant between two times. `x` and `y` give the place of a time and of bytes. */
export function outline({ low, high }: StackedArea, x: readonly number[], y: (bytes: number) => number): string {
  if (x.length === 0) return "";
  const upper = x.map((at, index) => (index === 0 ? `M${at} ${y(high[0]!)}` : `H${at}V${y(high[index]!)}`)).join("");
  const lower = [...x.keys()].reverse().map((index) => (index === 0 ? "" : `V${y(low[index]!)}H${x[index]}V${y(low[index - 1]!)}`)).join("");
  return `${upper}${lower}Z`;
}

export type Grouping = "place" | "module" | "line" | "operator";

export interface Group {
  readonly name: string;
  readonly bytes: number;
  readonly blocks: number;
  readonly kinds: readonly string[];
}

const NAMES: Readonly<Record<Grouping, (site: MemorySite) => string>> = {
  place: (site) => [lineOf(site), site.module, site.operator].filter(Boolean).join(", "),
  module: ({ module }) => module,
  line: (site) => lineOf(site),
  operator: ({ operator }) => operator,
};

/** "train.py:41 step", or nothing if no frame was recorded. */
export const lineOf = ({ file, line, function: name }: MemorySite): string => (file ? `${file}:${line} ${name}` : "");

/** The places with the same name as one row, the most bytes first. */
export function grouped(sites: readonly MemorySite[], by: Grouping): readonly Group[] {
  const groups = new Map<string, { name: string; bytes: number; blocks: number; kinds: string[] }>();
  for (const site of sites) {
    const name = NAMES[by](site) || "not recorded";
    const group = groups.get(name) ?? { name, bytes: 0, blocks: 0, kinds: [] };
    group.bytes += site.bytes;
    group.blocks += site.blocks;
    if (!group.kinds.includes(site.kind)) group.kinds.push(site.kind);
    groups.set(name, group);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

/** The groupings that the recording has names for. */
export function groupings(sites: readonly MemorySite[]): readonly Grouping[] {
  const has = (by: Grouping) => sites.some((site) => NAMES[by](site) !== "");
  return (["place", "module", "line", "operator"] as const).filter(has);
}
