// A series as a table: its points with their times, speeds and bottlenecks. Comparable points have bars.
import { Fragment } from "preact";
import type { RegressionPoint, RunEntry, RunPoint, RunSeries } from "../../../shared/report";
import { count, duration, factor } from "../../../shared/text/format";
import { runName, sourceName } from "../../../shared/text/names";
import { Swatch } from "../../../shared/widgets/swatch";
import { StackedBar } from "../../../shared/widgets/waterfall_table";
import { partsOf, regimeTitle } from "./areas";
import { entryNamed } from "./members";
import { pointHeading, range, regressionPointOf, relativeSpeed, seriesTitle, SPEED_HEADING } from "./summary";

interface Props {
  readonly series: RunSeries;
  readonly entries: readonly RunEntry[];
  readonly chosen: RunEntry;
  /** Opens the diagnosis of a recording. */
  readonly show: (entry: RunEntry) => void;
}

export function SeriesTable({ series, entries, chosen, show }: Props) {
  const { points, kind } = series;
  const bars = kind === "settings" || kind === "history";
  const longest = Math.max(...points.map(({ ns, high_ns }) => Math.max(ns, high_ns))) || 1;
  const regression = regressionPointOf(series);
  return (
    <table class={bars ? "of-series with-bars" : "of-series"}>
      <caption class="visually-hidden">{seriesTitle(series)}</caption>
      <thead>
        <tr>
          <th scope="col">{pointHeading(series)}</th>
          {bars && <th scope="col">Where the time goes</th>}
          <th scope="col" class="figure">Per {series.per}</th>
          {kind !== "apart" && <th scope="col" class="figure">{SPEED_HEADING}</th>}
          <th scope="col">Bottleneck</th>
        </tr>
      </thead>
      <tbody>
        {points.map((point, index) => (
          <Fragment key={index}>
            {point === regression && series.regression_point && <RegressionRow regression={series.regression_point} columns={bars ? 5 : 4} title={regimeTitle(points, series.regression_point.regime)} />}
            <tr>
              <th scope="row">
                <PointName series={series} point={point} entries={entries} chosen={chosen} show={show} />
              </th>
              {bars && (
                <td class="drawn">
                  <StackedBar parts={partsOf(point)} longest={longest} />
                  {point.high_ns > point.low_ns && (
                    <span class="whisker" style={{ insetInlineStart: at(point.low_ns, longest), width: at(point.high_ns - point.low_ns, longest) }} />
                  )}
                </td>
              )}
              <td class="figure time">
                {duration(point.ns)}
                <small title={point.runs.length > 1 ? "shortest and longest mean of its runs" : "95 % interval of the mean"}>{range(point)}</small>
              </td>
              {kind !== "apart" && <td class="figure speed" data-name="speed vs first">{relativeSpeed(point, index)}</td>}
              <td class="bottleneck">
                <Swatch regime={point.regime} />
                {regimeTitle(points, point.regime)}
                <small> {point.steps === 1 ? "one step" : `${count(point.steps)} steps`}</small>
              </td>
            </tr>
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

const at = (ns: number, longest: number): string => `calc(100% * ${Math.max(0, ns) / longest})`;

function RegressionRow({ regression, columns, title }: { regression: RegressionPoint; columns: number; title: string }) {
  return (
    <tr class="regression">
      <td colSpan={columns}>
        <b>Slower from here on: {factor(regression.slowdown)} the time.</b> {title} grew most.
      </td>
    </tr>
  );
}

/** The setting with its runs, or the run itself. */
function PointName({ series: { kind }, point: { value, run, runs }, entries, chosen, show }: Props & { readonly point: RunPoint }) {
  const names = runs.length > 0 ? runs : [run];
  const links = names.map((name) => {
    const entry = entryNamed(name, entries);
    if (!entry) return <span key={name}>{name}</span>;
    return (
      <button key={name} type="button" class="link" title={name} aria-current={entry === chosen ? "true" : undefined} onClick={() => show(entry)}>
        <bdi>{runName(entry.run)}</bdi> <bdi class="muted">{sourceName(entry.source)}</bdi>
        <span class="visually-hidden">, show its diagnosis</span>
      </button>
    );
  });
  if (kind !== "sweep" && kind !== "settings") return <>{links}</>;
  return (
    <>
      <b>{value}</b>
      <small class="runs-of-point">{links}</small>
    </>
  );
}
