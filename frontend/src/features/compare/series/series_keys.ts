// The recordings of a series, as the address spells them.
import { decoded } from "../../../shared/page/hash";
import type { Key } from "../../../shared/run/keys";

/** The limits of the server (http_api.md). */
export const MIN_RUNS = 2;
export const MAX_RUNS = 12;

/** Keys may contain any character, also commas, so each of them is escaped. */
export const seriesText = (keys: readonly Key[]): string => keys.map(encodeURIComponent).join(",");

/** The keys in this order without duplicates. Undefined if there are too few. */
export function seriesKeys(text: string | undefined): readonly Key[] | undefined {
  const parts = (text ?? "").split(",").map(decoded);
  const keys = [...new Set(parts)].filter((key) => key !== undefined && key !== "") as Key[];
  return keys.length >= MIN_RUNS ? keys.slice(0, MAX_RUNS) : undefined;
}
