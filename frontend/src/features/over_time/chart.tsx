// The chart of one telemetry panel. All charts share the time range and the cursor.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "../../shared/colours";
import { onThemeChange } from "../../shared/page/host";
import { axisTimes, sample } from "../../shared/text/format";
import { words } from "../../shared/text/identifier";
import { ceiling, type Panel } from "./panels";

const HEIGHT = 132;
const AXIS_WIDTH = 84; // px, the same in every chart so that their times are aligned
/** The colours of the lines. The first one has the colour of the text, because regimes are shaded behind it. */
export const HUES = ["", "input", "compute", "communication"];
export const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [8, 3, 2, 3]]; // in addition to the colours
const SHADE_COLOURS: ReadonlyMap<string, string> = new Map([
  ["power", "#c9822b"],
  ["heat", "#e05c5c"],
]);
export const shadeColour = (key: string): string => SHADE_COLOURS.get(key) ?? colourOf(key);
const GROUP = "tb_bottleneck"; // charts of this group share the cursor

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
  const latest = useRef({ panel, range, titles, choose });
  latest.current = { panel, range, titles, choose };
  const names = panel.lines.map(({ name }) => name).join();

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    const create = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest, element, showsTime), dataOf(latest.current.panel), element);
      const [min, max] = latest.current.range;
      plot.current.setScale("x", { min, max });
    };
    create();
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) plot.current?.setSize({ width: element.clientWidth, height: HEIGHT + (showsTime ? 20 : 0) });
    });
    observer.observe(element);
    const removeListener = onThemeChange(create);
    return () => {
      observer.disconnect();
      removeListener();
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
  latest: { readonly current: Pick<Props, "panel" | "range" | "titles" | "choose"> },
  element: HTMLElement,
  showsTime: boolean,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  const { unit, lines } = latest.current.panel;
  const labelFactor = () => (latest.current.panel.shades.length > 0 ? LABEL_FACTOR : 1);
  const top = () => ceiling(latest.current.panel.lines, latest.current.range[0], latest.current.range[1]).top * labelFactor();
  return {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT + (showsTime ? 20 : 0),
    padding: [8, 28, showsTime ? 0 : 6, 0], // leaves space for the last time label
    legend: { show: false },
    cursor: { sync: { key: GROUP, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 30 } },
    scales: { x: { time: true, auto: false }, y: { range: () => [0, top()] } },
    axes: [
      { ...axis, show: showsTime, size: (_, values) => (values?.some((label) => label.includes("\n")) ? 40 : 26), values: (_, splits) => [...axisTimes(splits.map((seconds) => seconds * 1_000))] },
      { ...axis, size: AXIS_WIDTH, values: (_, splits) => splits.map((value) => sample(value, unit)) },
    ],
    series: [
      {},
      ...lines.map(({ title }, index) => ({
        label: title,
        stroke: HUES[index % HUES.length] ? colourOf(HUES[index % HUES.length]!) : colour("text"),
        dash: [...DASHES[index % DASHES.length]!],
        width: 1.6,
        points: { show: false },
        spanGaps: true,
      })),
    ],
    hooks: {
      drawClear: [(plot) => shade(plot, latest.current, { text: colour("text"), page: colour("page"), font: style.fontFamily })],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 4) latest.current.choose(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
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

const LABEL_FACTOR = 1.18; // of the height, so that labels fit above the lines
const STRIP = 5; // px at the bottom, in full colour
const MIN_LABEL_WIDTH = 70; // px
const HATCH = 6;

/** Shades ranges behind the lines: the regime, or what limited the clocks. With colour, hatching and a label. */
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
    const rangeWidth = right - left;
    const bottom = bbox.top + bbox.height - STRIP * ratio;
    ctx.fillStyle = shadeColour(key);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, bbox.top, rangeWidth, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(left, bottom, rangeWidth, STRIP * ratio);
    if (lost) hatch(ctx, left, bottom, rangeWidth, STRIP * ratio, ratio, ink);
    if (rangeWidth > MIN_LABEL_WIDTH * ratio) label(ctx, titles.get(title) || words(title), left, bbox.top, rangeWidth, ratio, ink);
  }
  ctx.restore();
}

function hatch(ctx: CanvasRenderingContext2D, left: number, top: number, width: number, height: number, ratio: number, { page }: Ink): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.beginPath();
  for (let x = left - height; x < left + width; x += HATCH * ratio) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.strokeStyle = page;
  ctx.lineWidth = 1.6 * ratio;
  ctx.stroke();
  ctx.restore();
}

function label(ctx: CanvasRenderingContext2D, text: string, left: number, top: number, width: number, ratio: number, ink: Ink): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width - 4 * ratio, 18 * ratio);
  ctx.clip();
  ctx.font = `${11 * ratio}px ${ink.font}`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.fillStyle = ink.text;
  ctx.fillText(fitting(ctx, text, width - 9 * ratio), left + 5 * ratio, top + 4 * ratio);
  ctx.restore();
}

/** The text, shortened to fit. The legend below the chart has the full text. */
function fitting(ctx: CanvasRenderingContext2D, text: string, maxWidth: number): string {
  if (ctx.measureText(text).width <= maxWidth) return text;
  let length = text.length - 1;
  while (length > 0 && ctx.measureText(`${text.slice(0, length).trimEnd()}…`).width > maxWidth) length--;
  return `${text.slice(0, length).trimEnd()}…`;
}
