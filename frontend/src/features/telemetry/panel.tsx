// One panel of telemetry: what its lines read, the chart, what its shading means.
import { colourOf } from "../../shared/colours";
import { duration, fromSeconds, reading } from "../../shared/text/format";
import { words } from "../../shared/text/names";
import { Chart, DASHES, HUES, shadeColour } from "./chart";
import { ceiling, summary, type Panel, type Shade } from "./panels";

interface PanelProps {
  readonly panel: Panel;
  readonly range: readonly [number, number];
  readonly titles: ReadonlyMap<string, string>;
  readonly choose: (from: number, to: number) => void;
  readonly showsTime: boolean;
  /** Whether the range ends with what was read last of a training that goes on. */
  readonly live: boolean;
}

export function PanelView({ panel, range, titles, choose, showsTime, live }: PanelProps) {
  const leaves = ceiling(panel.lines, range[0], range[1]).cut;
  return (
    <section class="panel-view">
      <header>
        <h3>{panel.title}</h3>
        <dl>
          {panel.lines.map((line, place) => {
            const told = summary(line, range[0], range[1]);
            return (
              <div key={line.name}>
                <dt>
                  <svg class="key" viewBox="0 0 26 4" width="26" height="4" aria-hidden="true">
                    <path d="M0 2H26" stroke={HUES[place % HUES.length] ? colourOf(HUES[place % HUES.length]!) : "currentColor"} stroke-dasharray={DASHES[place % DASHES.length]!.join(" ")} />
                  </svg>
                  {line.title}
                </dt>
                <dd>
                  {told ? reading(told.now, panel.unit) : "–"}
                  <small>
                    {told && ` ${live ? "now" : "at the end"}, mean ${reading(told.mean, panel.unit)}, most ${reading(told.most, panel.unit)}`}
                  </small>
                </dd>
              </div>
            );
          })}
        </dl>
      </header>
      <Chart panel={panel} range={range} titles={titles} choose={choose} showsTime={showsTime} />
      {leaves && <p class="muted footnote beyond">Readings above {reading(ceiling(panel.lines, range[0], range[1]).top, panel.unit)} leave the chart: the most stands above it.</p>}
      <Shades shades={panel.shades} range={range} titles={titles} />
    </section>
  );
}

/** What the shading means, and for how long each; also what a screen reader gets of it. */
function Shades({ shades, range, titles }: { shades: readonly Shade[]; range: readonly [number, number]; titles: ReadonlyMap<string, string> }) {
  const spans = new Map<string, { title: string; key: string; lost: boolean; time: number }>();
  for (const { from, to, key, title, lost } of shades) {
    const time = Math.min(to, range[1]) - Math.max(from, range[0]);
    if (time <= 0) continue;
    const known = spans.get(title);
    if (known) known.time += time;
    else spans.set(title, { title: titles.get(title) || words(title), key, lost, time });
  }
  if (spans.size === 0) return null;
  return (
    <ul class="legend">
      {[...spans.values()]
        .sort((a, b) => b.time - a.time)
        .map(({ title, key, lost, time }) => (
          <li key={title}>
            <span class={lost ? "swatch hatched" : "swatch"} style={{ backgroundColor: shadeColour(key) }} />
            {title} <span class="muted">{duration(fromSeconds(time))}</span>
          </li>
        ))}
    </ul>
  );
}
