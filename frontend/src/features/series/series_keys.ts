// The recordings of a series as the address spells them.
import { decoded } from "../../shared/page/hash";
import type { Key } from "../../app/state";

/** How many the server takes at once (http_api.md). */
export const FEWEST = 2;
export const MOST = 12;

/** Keys may hold any character, a comma too: each is escaped. */
export const rowText = (keys: readonly Key[]): string => keys.map(encodeURIComponent).join(",");

/** The keys in this order, each once; undefined where the text names too few. */
export function rowIn(text: string | undefined): readonly Key[] | undefined {
  const named = (text ?? "").split(",").map(decoded);
  const keys = [...new Set(named)].filter((key) => key !== undefined && key !== "") as Key[];
  return keys.length >= FEWEST ? keys.slice(0, MOST) : undefined;
}
