// A series as a table: what each point is, how long it takes, what is at stake there; with a bar where that can be held against others.
import { Fragment } from "preact";
import { count, duration, factor } from "../../shared/text/format";
import { runName, sourceName } from "../../shared/text/names";
import type { RunEntry, RunPoint, RunSeries, RegressionPoint } from "../../shared/report";
import { partsOf, regimeTitle } from "./areas";
import { named } from "./members";
import { about, against, AGAINST, heading, kneeOf, range, turnOf } from "./summary";
import { Stack } from "../../shared/widgets/waterfall_table";
import { Swatch } from "../../shared/widgets/swatch";

interface Props {
  readonly told: RunSeries;
  readonly entries: readonly RunEntry[];
  readonly chosen: RunEntry;
  /** Opens the diagnosis of a recording. */
  readonly show: (entry: RunEntry) => void;
}

export function SeriesTable({ told, entries, chosen, show }: Props) {
  const { points, kind } = told;
  const bars = kind === "settings" || kind === "history";
  const longest = Math.max(...points.map(({ ns, high_ns }) => Math.max(ns, high_ns))) || 1;
  const [knee, turn] = [kneeOf(told), turnOf(told)];
  return (
    <table class={bars ? "of-series with-bars" : "of-series"}>
      <caption class="spoken">{about(told)}</caption>
      <thead>
        <tr>
          <th scope="col">{heading(told)}</th>
          {bars && <th scope="col">Where the time goes</th>}
          <th scope="col" class="figure">Per {told.per}</th>
          {kind !== "apart" && <th scope="col" class="figure">{AGAINST}</th>}
          <th scope="col">Most at stake</th>
        </tr>
      </thead>
      <tbody>
        {points.map((point, place) => (
          <Fragment key={place}>
            {point === turn && told.regression_point && <Slower turn={told.regression_point} columns={bars ? 5 : 4} title={regimeTitle(points, told.regression_point.regime)} />}
            <tr class={point === knee ? "at-knee" : undefined}>
              <th scope="row">
                <What told={told} point={point} entries={entries} chosen={chosen} show={show} mark={point === knee ? "knee" : ""} />
              </th>
              {bars && (
                <td class="drawn">
                  <Stack parts={partsOf(point)} longest={longest} />
                  {point.high_ns > point.low_ns && (
                    <span class="whisker" style={{ insetInlineStart: at(point.low_ns, longest), width: at(point.high_ns - point.low_ns, longest) }} />
                  )}
                </td>
              )}
              <td class="figure time">
                {duration(point.ns)}
                <small title={point.runs.length > 1 ? "the shortest and the longest mean of its runs" : "95 % interval of the mean"}>{range(point)}</small>
              </td>
              {kind !== "apart" && <td class="figure faster" data-name="speed vs first">{against(point, place)}</td>}
              <td class="stake">
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

function Slower({ turn, columns, title }: { turn: RegressionPoint; columns: number; title: string }) {
  return (
    <tr class="turn">
      <td colSpan={columns}>
        <b>Slower from here on: {factor(turn.slowdown)} the time.</b> {title} grew most.
      </td>
    </tr>
  );
}

/** The setting with the runs that have it, or the run itself. */
function What({ told: { kind }, point: { value, run, runs }, entries, chosen, show, mark }: Props & { readonly point: RunPoint; readonly mark: string }) {
  const names = runs.length > 0 ? runs : [run];
  const links = names.map((name) => {
    const entry = named(name, entries);
    if (!entry) return <span key={name}>{name}</span>;
    return (
      <button key={name} type="button" class="link" title={name} aria-current={entry === chosen ? "true" : undefined} onClick={() => show(entry)}>
        <bdi>{runName(entry.run)}</bdi> <bdi class="muted">{sourceName(entry.source)}</bdi>
        <span class="spoken">, show its diagnosis</span>
      </button>
    );
  });
  if (kind !== "sweep" && kind !== "settings") return <>{links}</>;
  return (
    <>
      <b>{value}</b> {mark && <span class="badge">{mark}</span>}
      <small class="its-runs">{links}</small>
    </>
  );
}
