// The parts of a whole run, for its strip and its table. Pure.
import type { RunPart } from "../../shared/report";

const LEAST = 0.005;

export interface Block {
  readonly kind: string;
  readonly from: number; // 0 to 1
  readonly height: number;
}

/** The parts of at least half a percent, the largest first. */
export const largestFirst = (parts: readonly RunPart[]): readonly RunPart[] =>
  parts.filter(({ share }) => share >= LEAST).sort((a, b) => b.share - a.share);

/** The blocks of each bin of time, from the bottom. Training lies at the bottom, so that the rest stands out above it. */
export function binsOf(parts: readonly RunPart[]): readonly (readonly Block[])[] {
  const ordered = [...parts].sort((a, b) => Number(b.kind === "training") - Number(a.kind === "training"));
  const bins = Math.max(0, ...parts.map(({ bins: shares }) => shares.length));
  return Array.from({ length: bins }, (_, bin) => {
    let from = 0;
    const stack: Block[] = [];
    for (const { kind, bins: shares } of ordered) {
      const height = Math.min(Math.max(shares[bin] ?? 0, 0), 1 - from);
      if (height > 0) stack.push({ kind, from, height });
      from += height;
    }
    return stack;
  });
}
