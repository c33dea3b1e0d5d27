// One panel of telemetry as a chart; all charts share the range of time and the cursor.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "../colours";
import { reading, timeOfDay } from "../format";
import { onThemeChange } from "../host";
import type { Panel, Shade } from "./panels";

const HEIGHT = 132;
const AXIS = 84; // px for the figures at the left, the same in every chart so that times stand under one another
/** The first line is in the text's own colour: regimes are shaded behind it in theirs. */
export const HUES = ["", "input", "compute", "communication"];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]]; // beside the colours
const SHADE_COLOURS: ReadonlyMap<string, string> = new Map([
  ["power", "#c9822b"],
  ["heat", "#e05c5c"],
]);

interface Props {
  readonly panel: Panel;
  readonly range: readonly [number, number];
  readonly group: string;
  readonly choose: (from: number, to: number) => void;
  readonly showsTime: boolean;
}

export function Chart({ panel, range, group, choose, showsTime }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const now = useRef(panel);
  now.current = panel;
  const names = panel.lines.map(({ name }) => name).join();

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(now, element, group, choose, showsTime), dataOf(now.current), element);
      plot.current.setScale("x", { min: range[0], max: range[1] });
    };
    make();
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) plot.current?.setSize({ width: element.clientWidth, height: HEIGHT + (showsTime ? 20 : 0) });
    });
    resized.observe(element);
    const endTheme = onThemeChange(make);
    return () => {
      resized.disconnect();
      endTheme();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names, panel.id, showsTime]);

  useEffect(() => {
    plot.current?.batch(() => {
      plot.current?.setData(dataOf(panel), false);
      plot.current?.setScale("x", { min: range[0], max: range[1] });
    });
  }, [panel, range[0], range[1]]);

  return <div class="chart" ref={holder} aria-hidden="true" />;
}

function dataOf({ lines }: Panel): uPlot.AlignedData {
  const tables = lines.map(({ times, values }) => [times, values] as unknown as uPlot.AlignedData);
  return tables.length === 1 ? tables[0]! : uPlot.join(tables);
}

function options(
  panel: { readonly current: Panel },
  element: HTMLElement,
  group: string,
  choose: (from: number, to: number) => void,
  showsTime: boolean,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  const { unit, lines } = panel.current;
  return {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT + (showsTime ? 20 : 0),
    padding: [8, 8, showsTime ? 0 : 6, 0],
    legend: { show: false },
    cursor: { sync: { key: group, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 30 } },
    scales: { x: { time: true, auto: false }, y: { range: (_, __, most) => [0, (most || 1) * 1.08] } },
    axes: [
      { ...axis, show: showsTime, size: 26, values: (_, splits) => splits.map((at) => timeOfDay(at * 1_000)) },
      { ...axis, size: AXIS, values: (_, splits) => splits.map((value) => reading(value, unit)) },
    ],
    series: [
      {},
      ...lines.map(({ title }, place) => ({
        label: title,
        stroke: HUES[place % HUES.length] ? colourOf(HUES[place % HUES.length]!) : colour("text"),
        dash: [...DASHES[place % DASHES.length]!],
        width: 1.6,
        points: { show: false },
        spanGaps: true,
      })),
    ],
    hooks: {
      drawClear: [(plot) => shade(plot, panel.current.shades)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 4) choose(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Stretches behind the lines: whose time it was, or what held the clocks down. */
function shade(plot: uPlot, shades: readonly Shade[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const { from, to, key } of shades) {
    const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.fillStyle = SHADE_COLOURS.get(key) ?? colourOf(key);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, bbox.top + bbox.height - 4, right - left, 4);
  }
  ctx.restore();
}
