// One panel of telemetry as a chart; all charts share the range of time and the cursor.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "../../shared/colours";
import { axisTimes, reading } from "../../shared/text/format";
import { words } from "../../shared/text/names";
import { onThemeChange } from "../../shared/page/host";
import { ceiling, type Panel } from "./panels";

const HEIGHT = 132;
const AXIS = 84; // px for the figures at the left, the same in every chart so that times stand under one another
/** The first line is in the text's own colour: regimes are shaded behind it in theirs. */
export const HUES = ["", "input", "compute", "communication"];
export const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [8, 3, 2, 3]]; // beside the colours
const SHADE_COLOURS: ReadonlyMap<string, string> = new Map([
  ["power", "#c9822b"],
  ["heat", "#e05c5c"],
]);
export const shadeColour = (key: string): string => SHADE_COLOURS.get(key) ?? colourOf(key);
const GROUP = "tb_bottleneck"; // of charts that share the cursor

interface Props {
  readonly panel: Panel;
  readonly range: readonly [number, number];
  readonly titles: ReadonlyMap<string, string>; // of regimes
  readonly choose: (from: number, to: number) => void;
  readonly showsTime: boolean;
}

export function Chart({ panel, range, titles, choose, showsTime }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const now = useRef({ panel, range, titles, choose });
  now.current = { panel, range, titles, choose };
  const names = panel.lines.map(({ name }) => name).join();

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(now, element, showsTime), dataOf(now.current.panel), element);
      const [min, max] = now.current.range;
      plot.current.setScale("x", { min, max });
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
  now: { readonly current: Pick<Props, "panel" | "range" | "titles" | "choose"> },
  element: HTMLElement,
  showsTime: boolean,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  const { unit, lines } = now.current.panel;
  const room = () => (now.current.panel.shades.length > 0 ? LABELLED : 1);
  const top = () => ceiling(now.current.panel.lines, now.current.range[0], now.current.range[1]).top * room();
  return {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT + (showsTime ? 20 : 0),
    padding: [8, 28, showsTime ? 0 : 6, 0], // a time under the last line has room
    legend: { show: false },
    cursor: { sync: { key: GROUP, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 30 } },
    scales: { x: { time: true, auto: false }, y: { range: () => [0, top()] } },
    axes: [
      { ...axis, show: showsTime, size: (_, values) => (values?.some((one) => one.includes("\n")) ? 40 : 26), values: (_, splits) => [...axisTimes(splits.map((at) => at * 1_000))] },
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
      drawClear: [(plot) => shade(plot, now.current, { text: colour("text"), page: colour("page"), font: style.fontFamily })],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 4) now.current.choose(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

interface Ink {
  readonly text: string;
  readonly page: string;
  readonly font: string;
}

const LABELLED = 1.18; // of the height: room for the words over the lines
const STRIP = 5; // px at the foot, in full colour
const LABEL_ROOM = 70; // px
const HATCH = 6;

/** Stretches behind the lines: whose time it was, or what held the clocks down. In words, hatched and coloured. */
function shade(plot: uPlot, { panel: { shades }, titles }: { readonly panel: Panel; readonly titles: ReadonlyMap<string, string> }, ink: Ink): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { from, to, key, title, lost } of shades) {
    const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    const wide = right - left;
    const foot = bbox.top + bbox.height - STRIP * ratio;
    ctx.fillStyle = shadeColour(key);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, bbox.top, wide, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(left, foot, wide, STRIP * ratio);
    if (lost) hatch(ctx, left, foot, wide, STRIP * ratio, ratio, ink);
    if (wide > LABEL_ROOM * ratio) label(ctx, titles.get(title) || words(title), left, bbox.top, wide, ratio, ink);
  }
  ctx.restore();
}

function hatch(ctx: CanvasRenderingContext2D, left: number, top: number, wide: number, high: number, ratio: number, { page }: Ink): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, wide, high);
  ctx.clip();
  ctx.beginPath();
  for (let x = left - high; x < left + wide; x += HATCH * ratio) {
    ctx.moveTo(x, top + high);
    ctx.lineTo(x + high, top);
  }
  ctx.strokeStyle = page;
  ctx.lineWidth = 1.6 * ratio;
  ctx.stroke();
  ctx.restore();
}

function label(ctx: CanvasRenderingContext2D, text: string, left: number, top: number, wide: number, ratio: number, ink: Ink): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, wide - 4 * ratio, 18 * ratio);
  ctx.clip();
  ctx.font = `${11 * ratio}px ${ink.font}`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.fillStyle = ink.text;
  ctx.fillText(fitting(ctx, text, wide - 9 * ratio), left + 5 * ratio, top + 4 * ratio);
  ctx.restore();
}

/** As much of the words as there is room for; all of them stand below the chart. */
function fitting(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let most = text.length - 1;
  while (most > 0 && ctx.measureText(`${text.slice(0, most).trimEnd()}…`).width > room) most--;
  return `${text.slice(0, most).trimEnd()}…`;
}
