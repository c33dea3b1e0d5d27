// Short texts about a series, used on the page.
import type { RunPoint, RunSeries } from "../../../shared/report";
import { count, duration, factor } from "../../../shared/text/format";

/** The column header of the points. */
export const pointHeading = ({ kind, varies }: RunSeries): string =>
  kind === "sweep" || kind === "settings" ? varies.charAt(0).toUpperCase() + varies.slice(1) : "Run";

/** The title of the chart and the table. */
export function seriesTitle({ kind, varies, per }: RunSeries): string {
  switch (kind) {
    case "sweep":
      return `Time per ${per} by ${varies}`;
    case "settings":
      return `Time per ${per} by ${varies}, longest first`;
    case "apart":
      return `Time per ${per} per run; the runs are not comparable`;
    default:
      return `Time per ${per}, run by run in the given order`;
  }
}

/** The range of the time of a point. */
export function range({ low_ns, high_ns, steps, runs }: RunPoint): string {
  if (steps < 2) return "one step: unknown";
  return `${duration(low_ns)} to ${duration(high_ns)}${runs.length > 1 ? ` over ${count(runs.length)} runs` : ""}`;
}

export const SPEED_HEADING = "Speed relative to the first";

/** The speed relative to the first point; "" for the first point itself. */
export const relativeSpeed = ({ speedup }: RunPoint, index: number): string => (index === 0 ? "" : factor(speedup));

/** The regression point: the first slower run of a history, if there is one. */
export function regressionPointOf({ regression_point: regression, points }: RunSeries): RunPoint | undefined {
  return regression && points.find(({ run, value }) => value === regression.since || run === regression.since);
}
