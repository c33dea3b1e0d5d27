// What the monitor measured while the training ran, or runs: charts under one another with one range and one cursor.
import { useEffect, useMemo, useState } from "preact/hooks";
import plotSheet from "uplot/dist/uPlot.min.css";
import { epochMs, fromSeconds, momentsBetween, unixSeconds } from "../../shared/text/format";
import { putInUrl } from "../../shared/page/host";
import { devicesOf, extent, panelsOf } from "./panels";
import { useDetail, useReadings, type Readings } from "./readings";
import type { TelemetryAnswer } from "../../shared/report";
import { addStyle } from "../../shared/page/style_sheet";
import { spanText, type Focus } from "../../app/state";
import charts from "../../shared/style/charts.css";
import sheet from "./telemetry.css";
import { moved, pressed, zoomed, type Span } from "../../shared/run/viewport";
import type { EvidenceProps } from "../../shared/run/view_props";
import { Losses } from "./data_loss";
import { PanelView } from "./panel";

addStyle(plotSheet);
addStyle(charts);
addStyle(sheet);

const FOLLOWED_NS = 300e9;
const CLOSEST_NS = 2e9; // readings are about a second apart
const SETTLED_MS = 350;

export function LiveView({ client, entry, report, focus }: EvidenceProps) {
  const readings = useReadings(client, entry.id);
  const { answer, problem } = readings;
  const titles = useMemo(() => new Map([...report.account, ...report.phases].map(({ regime, title }) => [regime, title])), [report]);
  if (!answer) {
    return problem ? <p class="awaited" role="status">{problem}</p> : <p class="muted late awaited" role="status">Asking for the readings…</p>;
  }
  return <Charts readings={readings} answer={answer} titles={titles} focus={focus} />;
}

interface ChartsProps {
  readonly readings: ReturnType<typeof useReadings>;
  readonly answer: TelemetryAnswer;
  readonly titles: ReadonlyMap<string, string>;
  readonly focus: Focus | undefined;
}

function Charts({ readings, answer, titles, focus }: ChartsProps) {
  const devices = devicesOf(answer);
  const [wanted, setDevice] = useState("");
  const device = devices.includes(wanted) ? wanted : (devices[0] ?? "");
  const [chosen, choose] = useState<Span | undefined>(focus && framed(focus));
  const [following, follow] = useState(answer.live);
  const panels = useMemo(() => panelsOf(answer, device), [answer, device]);
  const [first, last] = extent(panels);
  const whole: Span = { begin: fromSeconds(first), end: fromSeconds(last) };
  const followed = following && answer.live && whole.end - whole.begin > FOLLOWED_NS;
  const span: Span = chosen ?? (followed ? { begin: whole.end - FOLLOWED_NS, end: whole.end } : whole);
  const range = useMemo(() => [unixSeconds(span.begin), unixSeconds(span.end)] as const, [span.begin, span.end]);
  useDetail(readings, range[0], range[1]);
  useEffect(() => focus && choose(framed(focus)), [focus]);
  useEffect(() => {
    const timer = setTimeout(() => putInUrl("at", chosen ? spanText(chosen) : ""), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [chosen]);

  /** Nothing is closer than readings are apart; what would show everything follows, or shows all. */
  const go = (next: Span) => {
    if (next.begin <= whole.begin && next.end >= whole.end) return choose(undefined), follow(false);
    if (next.end - next.begin >= Math.min(CLOSEST_NS, span.end - span.begin)) choose(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = pressed(event.key, span, whole);
    if (!next) return;
    go(next);
    event.preventDefault();
  };
  if (panels.length === 0) return <p class="muted awaited" role="status">The monitor runs, and has written no readings yet.</p>;
  return (
    <section class="live">
      <h2 class="spoken">Telemetry</h2>
      <div class="controls">
        <Extent readings={readings} span={span} />
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
          <button type="button" aria-label="Earlier" title="Earlier (←)" onClick={() => go(moved(span, -0.5, whole))}>←</button>
          <button type="button" aria-label="Later" title="Later (→)" onClick={() => go(moved(span, 0.5, whole))}>→</button>
          <button type="button" aria-label="Closer" title="Closer (+)" onClick={() => go(zoomed(span, 0.5, 0.5, whole))}>+</button>
          <button type="button" aria-label="Farther" title="Farther (−)" onClick={() => go(zoomed(span, 2, 0.5, whole))}>−</button>
          {answer.live && (
            <button type="button" title="The last five minutes" aria-pressed={following && !chosen} onClick={() => (follow(true), choose(undefined))}>
              Follow
            </button>
          )}
          <button type="button" title="The whole run (0)" aria-pressed={!chosen && !(following && answer.live)} onClick={() => (follow(false), choose(undefined))}>
            All
          </button>
        </span>
      </div>
      <div
        class="charts"
        tabIndex={0}
        role="group"
        aria-roledescription="charts"
        aria-label="Charts of the readings. Arrow left and right move, plus and minus zoom, zero shows everything. Each chart’s figures stand above it as text."
        onKeyDown={onKeyDown}
      >
        {panels.map((panel, place) => (
          <PanelView
            key={panel.id}
            panel={panel}
            range={range}
            titles={titles}
            choose={(from, to) => choose({ begin: fromSeconds(from), end: fromSeconds(to) })}
            showsTime={place === panels.length - 1}
            live={answer.live && span.end >= whole.end}
          />
        ))}
      </div>
      <p class="muted footnote on-screen">Drag across a chart to look closer at a stretch; All shows everything again.</p>
      <Losses answer={answer} />
    </section>
  );
}

/** What was asked for, with some of what is around it. */
function framed({ begin, end, shown }: Focus): Span {
  const margin = (end - begin) * 0.25;
  return shown ?? { begin: begin - margin, end: end + margin };
}

/** When, and whether it still goes on. Times are only read out when they were asked for: those that follow change all the time. */
function Extent({ readings: { answer, problem }, span }: { readings: Readings; span: Span }) {
  return (
    <span class="extent">
      {answer?.live && <span class="live-dot" />}
      <span role="status">{problem ? "No new readings" : answer?.live ? "Live" : "Recorded"}</span>{" "}
      <span class="muted">
        {momentsBetween(epochMs(span.begin), epochMs(span.end))}
      </span>
      {problem && <span class="muted">{problem}</span>}
    </span>
  );
}
