// The difference between the peaks of two recordings, by category and by place.
import type { Memory } from "../report";
import { placeOf } from "../text/places";

export interface MemoryChange {
  readonly key: string;
  readonly title: string;
  readonly a: number; // bytes
  readonly b: number;
}

/** The categories of both peaks, the largest change first. */
export function partChanges(a: Memory, b: Memory): readonly MemoryChange[] {
  const titles = new Map([...a.parts, ...b.parts].map(({ kind, title }) => [kind, title]));
  const size = ({ parts }: Memory, kind: string) => parts.find((part) => part.kind === kind)?.bytes ?? 0;
  return byChange([...titles].map(([key, title]) => ({ key, title, a: size(a, key), b: size(b, key) })));
}

/** The places whose bytes differ by at least this share of the larger peak. */
const MIN_CHANGE = 0.01;
const MAX_PLACES = 12;

/** The places that are listed in one of the recordings, the largest change first. */
export function placeChanges(a: Memory, b: Memory): readonly MemoryChange[] {
  const sides = [bytesByPlace(a), bytesByPlace(b)] as const;
  const names = new Set([...sides[0].keys(), ...sides[1].keys()]);
  const changes = [...names].map((title) => ({ key: title, title, a: sides[0].get(title) ?? 0, b: sides[1].get(title) ?? 0 }));
  const least = MIN_CHANGE * Math.max(a.peak_bytes, b.peak_bytes);
  return byChange(changes.filter((row) => Math.abs(row.b - row.a) >= least)).slice(0, MAX_PLACES);
}

function bytesByPlace({ sites }: Memory): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const site of sites) {
    if (!site.others) found.set(placeOf(site), (found.get(placeOf(site)) ?? 0) + site.bytes);
  }
  return found;
}

const byChange = (rows: readonly MemoryChange[]): readonly MemoryChange[] => [...rows].sort((one, other) => Math.abs(other.b - other.a) - Math.abs(one.b - one.a));
