// Places that allocated memory, as text.
import type { MemorySite } from "../report";

/** "train.py:41 step", or nothing if no frame was recorded. */
export const lineOf = ({ file, line, function: name }: MemorySite): string => (file ? `${file}:${line} ${name}` : "");

/** Line, module and operator, as far as they were recorded. */
export function placeOf(site: MemorySite): string {
  if (site.others) return site.others === 1 ? "one other place" : `${site.others} other places`;
  return [lineOf(site), site.module, site.operator].filter(Boolean).join(", ") || "not recorded";
}
