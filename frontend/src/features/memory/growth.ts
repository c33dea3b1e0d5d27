// What the history of the memory says about growth.
import type { MemoryHistory } from "../../shared/report";
import { bytes } from "../../shared/text/format";

/** Whether the memory at the end of the steps rises, as a sentence. The last step is left out: nothing may have freed its blocks yet. */
export function growthText({ end_bytes: ends, steps }: MemoryHistory): string {
  const judged = ends.slice(0, -1);
  const rises = judged.slice(1).map((value, index) => value - judged[index]!);
  if (rises.length < 2) return "";
  if (rises.every((rise) => rise === 0)) return "Each step ends with the same memory.";
  const typical = [...rises].sort((a, b) => a - b)[rises.length >> 1]! / (steps || 1);
  if (rises.every((rise) => rise > 0)) return `Each step ends with more memory than the one before: ${bytes(typical)} per step.`;
  return `At the end of steps: ${bytes(Math.min(...judged))} to ${bytes(Math.max(...judged))}.`;
}
