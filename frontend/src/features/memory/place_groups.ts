// The bytes at the peak by module, line, operator or category: as a list of groups, and as a tree.
import type { Memory, MemorySite } from "../../shared/report";
import { lineOf, placeOf } from "../../shared/text/places";

export type Grouping = "place" | "module" | "line" | "operator" | "kind";

export interface Group {
  readonly name: string;
  readonly bytes: number;
  readonly blocks: number;
  readonly kinds: readonly string[];
}

const NAMES: Readonly<Record<Grouping, (site: MemorySite) => string>> = {
  place: placeOf,
  module: ({ module }) => module,
  line: lineOf,
  operator: ({ operator }) => operator,
  kind: ({ kind }) => kind,
};

/** The places with the same name as one row, the most bytes first. */
export function grouped(sites: readonly MemorySite[], by: Grouping): readonly Group[] {
  const groups = new Map<string, { name: string; bytes: number; blocks: number; kinds: string[] }>();
  for (const site of sites) {
    const name = (site.others && by !== "kind" ? placeOf(site) : NAMES[by](site)) || "not recorded";
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
  const has = (by: Grouping) => sites.some((site) => by === "kind" || (by === "place" ? placeOf(site) !== "not recorded" : NAMES[by](site) !== ""));
  return (["place", "module", "line", "operator", "kind"] as const).filter(has);
}

const UNALLOCATED = new Set(["cache", "fragmentation", "outside_torch"]); // no operator allocates it

/** The places with one more per category for what no place was recorded for, so that they sum to the tensors of the peak. */
export function allSites({ sites, parts }: Pick<Memory, "sites" | "parts">): readonly MemorySite[] {
  const placed = new Map<string, number>();
  for (const { kind, bytes } of sites) placed.set(kind, (placed.get(kind) ?? 0) + bytes);
  const rest = parts.map(({ kind, bytes }) => ({ kind, bytes: bytes - (placed.get(kind) ?? 0) }));
  const empty = { blocks: 0, operator: "", module: "", file: "", line: 0, function: "", path: [], others: 0 };
  return [...sites, ...rest.filter(({ kind, bytes }) => bytes > 0 && !UNALLOCATED.has(kind)).map((part) => ({ ...empty, ...part }))];
}

export interface TreeNode {
  readonly name: string;
  readonly bytes: number;
  readonly kinds: ReadonlyMap<string, number>; // bytes by category
  readonly children: readonly TreeNode[]; // the most bytes first
}

interface Growing {
  bytes: number;
  kinds: Map<string, number>;
  children: Map<string, Growing>;
}

/** The modules (of a snapshot: the calls) as a tree; below them lines, then operators. A node with a single child is joined with it. */
export function treeOf(sites: readonly MemorySite[]): TreeNode {
  const root = newNode();
  for (const site of sites) {
    let node = root;
    add(node, site);
    for (const name of levels(site)) {
      const child = node.children.get(name) ?? newNode();
      node.children.set(name, child);
      add(child, site);
      node = child;
    }
  }
  return finished("", root);
}

const newNode = (): Growing => ({ bytes: 0, kinds: new Map(), children: new Map() });

function add(node: Growing, { kind, bytes }: MemorySite): void {
  node.bytes += bytes;
  node.kinds.set(kind, (node.kinds.get(kind) ?? 0) + bytes);
}

function levels(site: MemorySite): readonly string[] {
  if (site.others) return [placeOf(site)];
  const names = [...site.path, site.module, lineOf(site), site.operator].filter(Boolean);
  return names.length > 0 ? names : ["not recorded"];
}

function finished(name: string, { bytes, kinds, children }: Growing): TreeNode {
  const below = [...children].map(([each, node]) => finished(each, node)).sort((a, b) => b.bytes - a.bytes);
  const only = below[0];
  if (name && only && below.length === 1 && only.bytes === bytes) return { ...only, name: `${name} › ${only.name}` };
  return { name, bytes, kinds, children: below };
}
