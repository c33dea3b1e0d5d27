// The colours of the tab. Regimes name a colour key (regimes.ts); warm colours are lost time, cool ones a working device.
//
// Every colour carries dark labels and is shown on the light and the dark page; a test checks the contrasts.

import { REGIMES, type RegimeColour } from "./regimes";

/** One colour for each colour key; a missing one is a type error. */
const COLOURS: Readonly<Record<RegimeColour, string>> = {
  orange: "#e2711d",
  amber: "#c9822b",
  red: "#e05c5c",
  gold: "#b98a00",
  brown: "#c27a5a",
  pink: "#d65f8d",
  magenta: "#c56bb8",
  violet: "#9a7bdc",
  blue: "#2f95c8",
  green: "#2f9e63",
  teal: "#26a0a0",
  grey: "#8a9099",
};

const REGIME_COLOURS: ReadonlyMap<string, string> = new Map(REGIMES.map(({ id, colour }) => [id, COLOURS[colour]]));

/** Of the phases of a pipeline. */
const PHASE_COLOURS: ReadonlyMap<string, string> = new Map([
  ["forward", COLOURS.blue],
  ["backward", COLOURS.green],
  ["both", COLOURS.teal],
]);

export const phaseColour = (phase: string): string => PHASE_COLOURS.get(phase) ?? COLOURS.grey;

/** Muted colours of everything else on the timeline, so that lost time stands out. On the light and on the dark page. */
const QUIET: ReadonlyMap<string, readonly [string, string]> = new Map([
  ["op", ["#b4c2d3", "#8b9db3"]],
  ["call", ["#93a9c2", "#7189a5"]],
  ["python", ["#cfc4ad", "#a39a85"]],
  ["mark", ["#e2e6ec", "#4d535c"]],
  ["step", ["#e8ebf0", "#474c54"]],
]);

export function quietColours(dark: boolean): ReadonlyMap<string, string> {
  return new Map([...QUIET].map(([key, [onLight, onDark]]) => [key, dark ? onDark : onLight]));
}

/** Regimes in which the device is known to do no useful work: lost time, which is hatched. Of unexplained time it is not known. */
const LOST: ReadonlySet<string> = new Set(REGIMES.filter(({ id, owner }) => (owner === "host" || owner === "link") && id !== "communication").map(({ id }) => id));
export const isLost = (regime: string): boolean => LOST.has(regime);

export const LABEL_COLOUR = "#111111";
const OTHER = "#7f93a8";

export function colourOf(regime: string): string {
  return REGIME_COLOURS.get(regime) ?? OTHER;
}

/** Colours of the parts of memory. What could be given back is red or grey. */
const MEMORY_COLOURS: ReadonlyMap<string, string> = new Map([
  ["parameters", COLOURS.blue],
  ["gradients", COLOURS.violet],
  ["optimizer", COLOURS.teal],
  ["activations", COLOURS.orange],
  ["temporaries", COLOURS.gold],
  ["inputs", COLOURS.green],
  ["communication", COLOURS.magenta],
  ["kept", "#6f8f3a"],
  ["workspaces", COLOURS.brown],
  ["graphs", COLOURS.pink],
  ["before_recording", OTHER],
  ["unexplained", COLOURS.amber],
  ["fragmentation", COLOURS.red],
  ["cache", COLOURS.grey],
]);

export const memoryColourOf = (kind: string): string => MEMORY_COLOURS.get(kind) ?? OTHER;

/** Colours of the parts of a whole run: training is a working device, the rest is time that it does not train. */
const RUN_COLOURS: ReadonlyMap<string, string> = new Map([
  ["training", COLOURS.green],
  ["start", COLOURS.grey],
  ["compilation", COLOURS.violet],
  ["warm_up", COLOURS.amber],
  ["epoch_start", COLOURS.orange],
  ["evaluation", COLOURS.teal],
  ["checkpoint", COLOURS.gold],
  ["logging", COLOURS.brown],
  ["garbage_collection", COLOURS.pink],
  ["pause", COLOURS.magenta],
  ["recording", COLOURS.blue],
  ["end", COLOURS.red],
]);

export const runColourOf = (kind: string): string => RUN_COLOURS.get(kind) ?? OTHER;

export const allColours: readonly string[] = [...Object.values(COLOURS), OTHER];
