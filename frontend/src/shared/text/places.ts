// Places that allocated memory, as text.
import type { MemorySite } from "../report";

/** "train.py:41 step", without an unknown line, or nothing if no frame was recorded. */
export const lineOf = ({ file, line, function: name }: MemorySite): string => (file ? `${file}${line ? `:${line}` : ""} ${name}` : "");

/** Module, operator and line, as far as they were recorded. The line comes last: it is long, and many places share it. */
export function placeOf(site: MemorySite): string {
  if (site.others) return site.others === 1 ? "one other place" : `${site.others} other places`;
  return [site.module, site.operator, lineOf(site)].filter(Boolean).join(", ") || "not recorded";
}
