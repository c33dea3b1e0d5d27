// What the monitor measured while the training ran, or runs: charts under one another with one range and one cursor.
import { useEffect, useMemo, useState } from "preact/hooks";
import plotSheet from "uplot/dist/uPlot.min.css";
import { colourOf } from "../colours";
import { count, duration, fromSeconds, reading, timeOfDay, unixSeconds, words } from "../format";
import { isHidden, onVisibilityChange } from "../host";
import { Chart, HUES } from "../live/chart";
import { devicesOf, extent, panelsOf, summary, type Panel, type Shade } from "../live/panels";
import { Poller } from "../poller";
import type { TelemetryAnswer } from "../report";
import { addStyle } from "../sheet";
import sheet from "../style/live.css";
import type { EvidenceProps } from "./evidence";

addStyle(plotSheet);
addStyle(sheet);

const FAST_MS = 2_000;
const SLOW_MS = 30_000;
const FOLLOWED_S = 300;

export function LiveView({ client, entry, report }: EvidenceProps) {
  const [answer, setAnswer] = useState<TelemetryAnswer>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    const poller = new Poller(async (signal) => {
      const found = await client.telemetry(entry.id, signal);
      if (found.kind === "ok") {
        setAnswer(found.value);
        setProblem(undefined);
      } else if (found.kind === "failed") {
        setProblem(found.message);
      }
      return found.kind === "ok" && found.value.live ? FAST_MS : SLOW_MS;
    });
    const update = () => (isHidden() ? poller.pause() : poller.now());
    update();
    const end = onVisibilityChange(update);
    return () => {
      end();
      poller.pause();
    };
  }, [entry.id]);

  if (!answer) return problem ? <p role="status">{problem}</p> : <p class="muted late" role="status">Asking for the readings…</p>;
  return <Charts answer={answer} problem={problem} titles={new Map(report.account.map((row) => [row.regime, row.title]))} />;
}

interface ChartsProps {
  readonly answer: TelemetryAnswer;
  readonly problem: string | undefined;
  readonly titles: ReadonlyMap<string, string>;
}

function Charts({ answer, problem, titles }: ChartsProps) {
  const devices = devicesOf(answer);
  const [device, setDevice] = useState(devices[0] ?? "");
  const [chosen, choose] = useState<readonly [number, number]>();
  const [following, follow] = useState(answer.live);
  const panels = useMemo(() => panelsOf(answer, devices.includes(device) ? device : (devices[0] ?? "")), [answer, device]);
  const whole = extent(panels);
  const followed = following && answer.live && whole[1] - whole[0] > FOLLOWED_S;
  const range: readonly [number, number] = chosen ?? (followed ? [whole[1] - FOLLOWED_S, whole[1]] : whole);
  if (panels.length === 0) return <p class="muted" role="status">The monitor runs, and has written no readings yet.</p>;
  return (
    <section class="live">
      <h2 class="spoken">Telemetry</h2>
      <div class="controls">
        <span class="extent" role="status">
          {answer.live && <span class="live-dot" />}
          {answer.live ? "Live" : "Recorded"} <span class="muted">{timeOfDay(range[0] * 1_000)} to {timeOfDay(range[1] * 1_000)}</span>
        </span>
        <span class="buttons">
          {devices.length > 1 && (
            <select aria-label="GPU" value={device} onChange={(event) => setDevice(event.currentTarget.value)}>
              {devices.map((one, place) => (
                <option key={one} value={one}>
                  GPU {place} ({one.slice(0, 12)})
                </option>
              ))}
            </select>
          )}
          {answer.live && (
            <button type="button" aria-pressed={following && !chosen} onClick={() => (follow(true), choose(undefined))}>
              Follow
            </button>
          )}
          <button type="button" aria-pressed={!chosen && !following} onClick={() => (follow(false), choose(undefined))}>
            All
          </button>
        </span>
      </div>
      {problem && <p role="status">No new readings: {problem}</p>}
      {panels.map((panel, place) => (
        <PanelView
          key={panel.id}
          panel={panel}
          range={range}
          titles={titles}
          choose={(from, to) => choose([from, to])}
          showsTime={place === panels.length - 1}
        />
      ))}
      <p class="muted footnote">Drag across a chart to look closer at a stretch; All shows everything again.</p>
      <Losses answer={answer} />
    </section>
  );
}

interface PanelProps {
  readonly panel: Panel;
  readonly range: readonly [number, number];
  readonly titles: ReadonlyMap<string, string>;
  readonly choose: (from: number, to: number) => void;
  readonly showsTime: boolean;
}

function PanelView({ panel, range, titles, choose, showsTime }: PanelProps) {
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
                  <span class={`key dash-${place % HUES.length}`} style={{ color: HUES[place % HUES.length] ? colourOf(HUES[place % HUES.length]!) : "var(--text)" }} />
                  {line.title}
                </dt>
                <dd>
                  {told ? reading(told.now, panel.unit) : "–"}
                  <small>
                    {told && ` mean ${reading(told.mean, panel.unit)}, most ${reading(told.most, panel.unit)}`}
                  </small>
                </dd>
              </div>
            );
          })}
        </dl>
      </header>
      <Chart panel={panel} range={range} group="tb_bottleneck" choose={choose} showsTime={showsTime} />
      <Shades shades={panel.shades} range={range} titles={titles} />
    </section>
  );
}

/** What the shading means, and for how long each; also what a screen reader gets of it. */
function Shades({ shades, range, titles }: { shades: readonly Shade[]; range: readonly [number, number]; titles: ReadonlyMap<string, string> }) {
  const spans = new Map<string, { title: string; key: string; time: number }>();
  for (const { from, to, key, title } of shades) {
    const time = Math.min(to, range[1]) - Math.max(from, range[0]);
    if (time <= 0) continue;
    const known = spans.get(key);
    if (known) known.time += time;
    else spans.set(key, { title: titles.get(key) ?? words(title), key, time });
  }
  if (spans.size === 0) return null;
  return (
    <ul class="legend">
      {[...spans.values()]
        .sort((a, b) => b.time - a.time)
        .map(({ title, key, time }) => (
          <li key={key}>
            <span class="swatch inline" style={{ backgroundColor: key === "power" ? "#c9822b" : key === "heat" ? "#e05c5c" : colourOf(key) }} />
            {title} <span class="muted">{duration(fromSeconds(time))}</span>
          </li>
        ))}
    </ul>
  );
}

/** What could not be measured, and what was lost. */
function Losses({ answer: { context, notes, lost_packets, dropped } }: { answer: TelemetryAnswer }) {
  const unsupported = context?.unsupported ?? [];
  const told = [...(context?.notes ?? []), ...notes];
  if (unsupported.length === 0 && told.length === 0 && lost_packets === 0 && dropped.length === 0) return null;
  return (
    <details>
      <summary>What could not be measured, and what happened to the monitor</summary>
      <ul class="losses">
        {lost_packets > 0 && <li>{count(lost_packets)} packets of readings were lost.</li>}
        {dropped.map(({ reason, count: many }) => (
          <li key={reason}>
            {count(many)} could not be used: {words(reason)}.
          </li>
        ))}
        {unsupported.map(({ name, because }, index) => (
          <li key={`${name} ${index}`}>
            <b>{words(name)}</b>: {because}
          </li>
        ))}
        {told.map(({ unix_ns, code, detail }, index) => (
          <li key={index}>
            {timeOfDay(unixSeconds(unix_ns) * 1_000)} <b>{words(code)}</b>: {detail}
          </li>
        ))}
      </ul>
    </details>
  );
}
