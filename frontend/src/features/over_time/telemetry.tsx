// The telemetry of the monitor, during or after the training: charts with a common time range and cursor.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import plotSheet from "uplot/dist/uPlot.min.css";
import { addStyle } from "../../shared/page/style_sheet";
import type { TelemetryAnswer } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import type { ViewProps } from "../../shared/run/view_props";
import { moved, spanAfterKey, zoomed, type Span } from "../../shared/run/viewport";
import charts from "../../shared/style/charts.css";
import { epochMs, fromSeconds, momentsBetween, unixSeconds } from "../../shared/text/format";
import { DataLoss } from "./data_loss";
import { PanelView } from "./panel";
import { devicesOf, extent, panelsOf } from "./panels";
import { useDetail, useTelemetry, type TelemetryData } from "./telemetry_data";
import sheet from "./telemetry.css";

addStyle(plotSheet);
addStyle(charts);
addStyle(sheet);

const FOLLOWED_NS = 300e9;
const SHORTEST_NS = 2e9; // samples are about one second apart
const SETTLED_MS = 350;

export function TelemetryView({ client, entry, report, focus, visible, setVisible }: ViewProps) {
  const telemetry = useTelemetry(client, entry.id);
  const { data, problem } = telemetry;
  const titles = useMemo(() => new Map([...report.account, ...report.phases].map(({ regime, title }) => [regime, title])), [report]);
  if (!data) {
    return problem ? <p class="request" role="status">{problem}</p> : <p class="muted delayed request" role="status">Loading the telemetry…</p>;
  }
  return <Charts telemetry={telemetry} data={data} titles={titles} focus={focus} visible={visible} setVisible={setVisible} />;
}

interface ChartsProps {
  readonly telemetry: ReturnType<typeof useTelemetry>;
  readonly data: TelemetryAnswer;
  readonly titles: ReadonlyMap<string, string>;
  readonly focus: Focus | undefined;
  readonly visible: Span | undefined;
  readonly setVisible: (visible: Span | undefined) => void;
}

function Charts({ telemetry, data, titles, focus, visible, setVisible }: ChartsProps) {
  const devices = devicesOf(data);
  const [selectedDevice, setDevice] = useState("");
  const device = devices.includes(selectedDevice) ? selectedDevice : (devices[0] ?? "");
  const [chosen, choose] = useState<Span | undefined>(visible ?? (focus && withMargin(focus)));
  const current = useRef({ focus, visible }); // what `chosen` was derived from, or was stored as
  const [following, follow] = useState(data.live);
  const panels = useMemo(() => panelsOf(data, device), [data, device]);
  const [first, last] = extent(panels);
  const whole: Span = { begin: fromSeconds(first), end: fromSeconds(last) };
  const followed = following && data.live && whole.end - whole.begin > FOLLOWED_NS;
  const span: Span = chosen ?? (followed ? { begin: whole.end - FOLLOWED_NS, end: whole.end } : whole);
  const range = useMemo(() => [unixSeconds(span.begin), unixSeconds(span.end)] as const, [span.begin, span.end]);
  useDetail(telemetry, range[0], range[1]);
  useEffect(() => {
    if (focus === current.current.focus && visible === current.current.visible) return;
    current.current = { focus, visible };
    choose(visible ?? (focus && withMargin(focus)));
  }, [focus, visible]);
  useEffect(() => {
    const timer = setTimeout(() => {
      current.current = { ...current.current, visible: chosen };
      setVisible(chosen);
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [chosen]);

  /** Shows a range, but none shorter than the interval of the samples. The whole range shows everything. */
  const go = (next: Span) => {
    if (next.begin <= whole.begin && next.end >= whole.end) return choose(undefined), follow(false);
    if (next.end - next.begin >= Math.min(SHORTEST_NS, span.end - span.begin)) choose(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = spanAfterKey(event.key, span, whole);
    if (!next) return;
    go(next);
    event.preventDefault();
  };
  if (panels.length === 0) return <p class="muted request" role="status">The monitor has not written any telemetry yet.</p>;
  return (
    <section class="telemetry">
      <h2 class="visually-hidden">Telemetry</h2>
      <div class="controls">
        <Extent telemetry={telemetry} span={span} />
        <span class="buttons">
          {devices.length > 1 && (
            <select aria-label="GPU" value={device} onChange={(event) => setDevice(event.currentTarget.value)}>
              {devices.map((id, index) => (
                <option key={id} value={id}>
                  GPU {index} ({id.slice(0, 12)})
                </option>
              ))}
            </select>
          )}
          <button type="button" aria-label="Earlier" title="Earlier (←)" onClick={() => go(moved(span, -0.5, whole))}>←</button>
          <button type="button" aria-label="Later" title="Later (→)" onClick={() => go(moved(span, 0.5, whole))}>→</button>
          <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => go(zoomed(span, 0.5, 0.5, whole))}>+</button>
          <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => go(zoomed(span, 2, 0.5, whole))}>−</button>
          {data.live && (
            <button type="button" title="The last five minutes" aria-pressed={following && !chosen} onClick={() => (follow(true), choose(undefined))}>
              Follow
            </button>
          )}
          <button type="button" title="The whole run (0)" aria-pressed={!chosen && !(following && data.live)} onClick={() => (follow(false), choose(undefined))}>
            All
          </button>
        </span>
      </div>
      <div
        class="charts"
        tabIndex={0}
        role="group"
        aria-roledescription="charts"
        aria-label="Telemetry charts. Left and right arrow move, plus and minus zoom, zero shows everything. The values of each chart are above it as text."
        onKeyDown={onKeyDown}
      >
        {panels.map((panel, index) => (
          <PanelView
            key={panel.id}
            panel={panel}
            range={range}
            titles={titles}
            choose={(from, to) => choose({ begin: fromSeconds(from), end: fromSeconds(to) })}
            showsTime={index === panels.length - 1}
            live={data.live && span.end >= whole.end}
          />
        ))}
      </div>
      <p class="muted footnote on-screen">Drag across a chart to zoom in; All shows everything again.</p>
      <DataLoss data={data} />
    </section>
  );
}

/** The range with some context on both sides. */
function withMargin({ begin, end }: Focus): Span {
  const margin = (end - begin) * 0.25;
  return { begin: begin - margin, end: end + margin };
}

/** The visible range, and whether the training is still running. The times are no live region, because they change constantly. */
function Extent({ telemetry: { data, problem }, span }: { telemetry: TelemetryData; span: Span }) {
  return (
    <span class="extent">
      {data?.live && <span class="live-dot" />}
      <span role="status">{problem ? "No new data" : data?.live ? "Live" : "Recorded"}</span>{" "}
      <span class="muted">
        {momentsBetween(epochMs(span.begin), epochMs(span.end))}
      </span>
      {problem && <span class="muted">{problem}</span>}
    </span>
  );
}
