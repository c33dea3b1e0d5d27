// The figures of efficiency as text.
import type { Efficiency, EfficiencyNote, Headroom, TypeShare } from "../report";
import { count, flops, operations, shortShare } from "./format";

export interface Figure {
  readonly note: EfficiencyNote;
  /** Undefined if the figure is not known. */
  readonly value: string | undefined;
}

/** All figures, in the order of the report. */
export function figuresOf(efficiency: Efficiency): readonly Figure[] {
  const values: Readonly<Record<string, unknown>> = { ...efficiency };
  return efficiency.notes.map((note) => {
    const value = values[note.field];
    const types = note.field === "peak_flops" ? typesText(efficiency.types) : "";
    return { note, value: typeof value === "number" ? valueText(value, note.unit) + types : undefined };
  });
}

export const knownFigures = (efficiency: Efficiency): readonly Figure[] => figuresOf(efficiency).filter(({ value }) => value !== undefined);

const EXPLAINED = ["mfu", "samples_per_second"];

/** Why the most wanted figures are not known: "Samples per second is not known: recordings of some ranks are missing." */
export const unknownText = (efficiency: Efficiency): string =>
  figuresOf(efficiency)
    .filter(({ note, value }) => value === undefined && EXPLAINED.includes(note.field))
    .map(({ note }) => `${note.title} is not known: ${note.because}.`)
    .join(" ");

/** A value by the unit of its note. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case "share":
      return shortShare(value);
    case "flops":
      return operations(value);
    case "flops_per_s":
      return flops(value);
    case "per_second":
      return `${short(value)}/s`;
    case "joules":
      return `${short(value)}\u00a0J`;
    default:
      return short(value);
  }
}

const short = (value: number): string => (value < 100 ? String(Number(value.toPrecision(3))) : count(value));

function typesText(types: readonly TypeShare[]): string {
  if (types.length === 1) return ` ${types[0]!.dtype}`;
  return types.map(({ dtype, share }) => ` ${dtype} ${shortShare(share)}`).join(",");
}

/** The bound of an item, or "". */
export const boundText = ({ share }: Headroom): string => (share === undefined ? "" : `at most ${shortShare(share)} of the time`);
