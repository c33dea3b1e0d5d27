// How a series is said in short: the same words on the page and in Markdown.
import { count, duration, factor } from "../../shared/text/format";
import type { RunPoint, RunSeries } from "../../shared/report";

/** What each point stands for, over its column. */
export const heading = ({ kind, varies }: RunSeries): string =>
  kind === "sweep" || kind === "settings" ? varies.charAt(0).toUpperCase() + varies.slice(1) : "Run";

/** What the times are, over the chart and the table. */
export function about({ kind, varies, per }: RunSeries): string {
  switch (kind) {
    case "sweep":
      return `Time per ${per} by ${varies}`;
    case "settings":
      return `Time per ${per} by ${varies}, the longest first`;
    case "apart":
      return `Time per ${per} of each; they cannot be held against each other`;
    default:
      return `Time per ${per}, run by run in the order asked for`;
  }
}

/** How far the time of a point is known. */
export function range({ low_ns, high_ns, steps, runs }: RunPoint): string {
  if (steps < 2) return "one step: not known";
  return `${duration(low_ns)} to ${duration(high_ns)}${runs.length > 1 ? ` over ${count(runs.length)} runs` : ""}`;
}

export const AGAINST = "Speed against the first";

/** How fast it is against the first one; nothing of the first itself. */
export const against = ({ speedup }: RunPoint, place: number): string => (place === 0 ? "" : factor(speedup));

/** The point from which on more brings little; undefined where there is none. */
export const kneeOf = ({ knee, points }: RunSeries): RunPoint | undefined => knee && points.find(({ value }) => value === knee.value);

/** The first point since which the row is slower; undefined where it is not. */
export const turnOf = ({ regression_point: turn, points }: RunSeries): RunPoint | undefined => turn && points.find(({ run, value }) => value === turn.since || run === turn.since);
