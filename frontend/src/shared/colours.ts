// The one thing that the tab knows about regimes: their colours. Warm is time lost, cool is the device at work.
//
// Every colour carries dark labels and stands on the light and the dark page; a test holds their contrasts.

const COLOURS: ReadonlyMap<string, string> = new Map([
  ["input", "#e2711d"],
  ["transfer", "#c9822b"],
  ["sync", "#e05c5c"],
  ["launch", "#b98a00"],
  ["host", "#c27a5a"],
  ["allocator", "#d65f8d"],
  ["interruption", "#c56bb8"],
  ["communication", "#9a7bdc"],
  ["memory", "#2f95c8"],
  ["compute", "#2f9e63"],
  ["underfilled", "#26a0a0"],
  ["unexplained", "#8a9099"],
  ["gpu_unused", "#e05c5c"],
]);

/** What the timeline shows beside regimes: quiet, so that time lost stands out. Light and dark page. */
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

/** Regimes in which the device works; in all others it is kept from working, and they are hatched where drawn small. */
const AT_WORK: ReadonlySet<string> = new Set(["memory", "compute", "underfilled", "communication"]);
export const isLost = (regime: string): boolean => !AT_WORK.has(regime);

export const LABEL_COLOUR = "#111111";
const OTHER = "#7f93a8";

export function colourOf(regime: string): string {
  return COLOURS.get(regime) ?? OTHER;
}

export const allColours: readonly string[] = [...COLOURS.values(), OTHER];
