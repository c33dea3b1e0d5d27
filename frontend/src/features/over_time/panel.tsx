// One panel of telemetry: the values of its lines, the chart, and the legend of its shading.
import { colourOf } from "../../shared/colours";
import { duration, fromSeconds, sample } from "../../shared/text/format";
import { words } from "../../shared/text/identifier";
import { memoryTrend } from "./memory_trend";
import { Chart, DASHES, HUES, shadeColour } from "./chart";
import { ceiling, summary, type Panel, type Shade } from "./panels";

interface PanelProps {
  readonly panel: Panel;
  readonly range: readonly [number, number];
  readonly titles: ReadonlyMap<string, string>;
  readonly choose: (from: number, to: number) => void;
  readonly showsTime: boolean;
  /** True if the range ends with the latest sample of a running training. */
  readonly live: boolean;
}

export function PanelView({ panel, range, titles, choose, showsTime, live }: PanelProps) {
  const { cut, top } = ceiling(panel.lines, range[0], range[1]);
  return (
    <section class="panel-view">
      <header>
        <h3>{panel.title}</h3>
        <dl>
          {panel.lines.map((line, index) => {
            const values = summary(line, range[0], range[1]);
            return (
              <div key={line.name}>
                <dt>
                  <svg class="key" viewBox="0 0 26 4" width="26" height="4" aria-hidden="true">
                    <path d="M0 2H26" stroke={HUES[index % HUES.length] ? colourOf(HUES[index % HUES.length]!) : "currentColor"} stroke-dasharray={DASHES[index % DASHES.length]!.join(" ")} />
                  </svg>
                  {line.title}
                </dt>
                <dd>
                  {values ? sample(values.now, panel.unit) : "–"}
                  <small>
                    {values && ` ${live ? "now" : "at the end"}, mean ${sample(values.mean, panel.unit)}, max ${sample(values.max, panel.unit)}`}
                  </small>
                </dd>
              </div>
            );
          })}
        </dl>
      </header>
      <Chart panel={panel} range={range} titles={titles} choose={choose} showsTime={showsTime} />
      {cut && <p class="muted footnote cut">Values above {sample(top, panel.unit)} are outside of the chart. The maximum is shown above it.</p>}
      {memoryTrend(panel, range[0], range[1]).map((sentence) => (
        <p key={sentence} class="footnote">
          {sentence}
        </p>
      ))}
      <ShadeLegend shades={panel.shades} range={range} titles={titles} />
    </section>
  );
}

/** The meaning of the shading and the time of each, also for screen readers. */
function ShadeLegend({ shades, range, titles }: { shades: readonly Shade[]; range: readonly [number, number]; titles: ReadonlyMap<string, string> }) {
  const byTitle = new Map<string, { title: string; key: string; lost: boolean; time: number }>();
  for (const { from, to, key, title, lost } of shades) {
    const time = Math.min(to, range[1]) - Math.max(from, range[0]);
    if (time <= 0) continue;
    const earlier = byTitle.get(title);
    if (earlier) earlier.time += time;
    else byTitle.set(title, { title: titles.get(title) || words(title), key, lost, time });
  }
  if (byTitle.size === 0) return null;
  return (
    <ul class="legend">
      {[...byTitle.values()]
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
