// A sweep as a chart: the time over the varied setting, with stacked regimes and error bars.
import { useRef } from "preact/hooks";
import { colourOf, isLost, LABEL_COLOUR } from "../../../shared/colours";
import { useWidth } from "../../../shared/page/media";
import type { RunSeries } from "../../../shared/report";
import { duration, roundDuration } from "../../../shared/text/format";
import { Swatch } from "../../../shared/widgets/swatch";
import { areas, type Area } from "./areas";
import { placeValues, ticks } from "./scale";
import { pointHeading } from "./summary";

const WIDTH = 860;
const HEIGHT = 380;
const LEFT = 64;
const RIGHT = 26;
const INSET = 14; // distance of the first and the last point from the ends of the axis
const TOP = 34;
const BOTTOM = 46;
const CAP = 5; // half the width of an error bar's ends
const DOT = 4.5;
const TICKS = 5;
const SPACING = { linear: "", logarithmic: ", logarithmic", even: ", not to scale" };

interface Frame {
  readonly width: number;
  readonly bottom: number;
  readonly x: readonly number[]; // of each point
  readonly y: (ns: number) => number;
  readonly grid: readonly number[]; // ns
}

export function Curve({ series }: { series: RunSeries }) {
  const { points } = series;
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const spacing = placeValues(points.map(({ value }) => Number(value)));
  const highest = Math.max(...points.map(({ ns, high_ns }) => Math.max(ns, high_ns)));
  const [bottom, right] = [HEIGHT - BOTTOM, width - RIGHT];
  const inner = LEFT + INSET;
  const frame: Frame = {
    width,
    bottom,
    x: spacing.at.map((at) => inner + at * (right - inner)),
    y: (ns) => bottom - (Math.max(ns, 0) / (highest || 1)) * (bottom - TOP),
    grid: ticks(highest, TICKS),
  };
  const stack = areas(points);
  return (
    <>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={`${description(series)}; the table below has the same content`}>
        <defs>
          <pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <path class="lost" d="M1 0V6" />
          </pattern>
        </defs>
        <Grid frame={frame} />
        {stack.map((area) => (
          <g key={area.regime}>
            <path class="area" d={outline(area, frame)} fill={colourOf(area.regime)} />
            {isLost(area.regime) && <path d={outline(area, frame)} fill="url(#hatching)" />}
          </g>
        ))}
        {stack.map((area) => (
          <AreaLabel key={area.regime} area={area} frame={frame} />
        ))}
        <path class="curve" d={points.map(({ ns }, index) => `${index === 0 ? "M" : "L"}${frame.x[index]} ${frame.y(ns)}`).join("")} />
        {points.map(({ ns, low_ns, high_ns }, index) => (
          <g key={index}>
            {high_ns > low_ns && <path class="error" d={whisker(frame.x[index]!, frame.y(low_ns), frame.y(high_ns))} />}
            <path class="point" d={dot(frame.x[index]!, frame.y(ns))} />
          </g>
        ))}
        {points.map(({ value }, index) => (
          <text key={index} class="value" x={frame.x[index]} y={bottom + 18} text-anchor="middle">{value}</text>
        ))}
        <text x={(LEFT + right) / 2} y={HEIGHT - 6} text-anchor="middle">{`${series.varies}${SPACING[spacing.kind]}`}</text>
      </svg>
      <ul class="legend">
        {[...stack].reverse().filter(({ inLegend }) => inLegend).map(({ regime, title }) => (
          <li key={regime}>
            <Swatch regime={regime} />
            {title}
          </li>
        ))}
        <li class="muted">line: total time with its range; striped: the device does no useful work</li>
      </ul>
    </>
  );
}

function Grid({ frame: { grid, y, width, bottom } }: { frame: Frame }) {
  return (
    <g class="grid">
      {grid.map((ns) => (
        <g key={ns}>
          <path d={`M${LEFT} ${y(ns)}H${width - RIGHT + INSET}`} />
          <text x={LEFT - 8} y={y(ns) + 4} text-anchor="end">{ns === 0 ? "0" : roundDuration(ns)}</text>
        </g>
      ))}
      <path d={`M${LEFT} ${TOP}V${bottom}`} />
    </g>
  );
}

const CHARACTER_WIDTH = 7; // px, approximately
const PADDING = 4; // px between a label and the end of its area
const LABEL_HEIGHT = 19; // px

/** The label of a regime where its area is thickest, if it fits. Colours alone are not enough. */
function AreaLabel({ area: { regime, title, low, high }, frame: { x, y, width } }: { area: Area; frame: Frame }) {
  const heights = high.map((to, index) => y(low[index]!) - y(to));
  const thickest = heights.indexOf(Math.max(...heights));
  if (heights[thickest]! < LABEL_HEIGHT) return null;
  const half = (title.length * CHARACTER_WIDTH) / 2 + PADDING;
  const [leftmost, rightmost] = [LEFT + INSET + half, width - RIGHT - half];
  const centre = Math.min(Math.max(x[thickest]!, leftmost), rightmost);
  // The label must be inside of the area over its whole width, not only where the area is thickest.
  const ends = [centre - half, centre, centre + half].map((at) => [interpolate(at, x, low.map(y)), interpolate(at, x, high.map(y))] as const);
  const [floor, ceiling] = [Math.min(...ends.map(([from]) => from)), Math.max(...ends.map(([, to]) => to))];
  if (floor - ceiling < LABEL_HEIGHT) return null;
  // Near the edges the label is anchored at its end, because only the browser knows its width.
  const anchor = centre === leftmost ? "start" : centre === rightmost ? "end" : "middle";
  const from = { start: centre - half + PADDING, middle: centre, end: centre + half - PADDING }[anchor];
  const middle = (floor + ceiling) / 2;
  return (
    <>
      {isLost(regime) && <rect x={centre - half} y={middle - LABEL_HEIGHT / 2} width={2 * half} height={LABEL_HEIGHT} fill={colourOf(regime)} />}
      <text class="regime" x={from} y={middle + 4} text-anchor={anchor} style={{ fill: LABEL_COLOUR }}>{title}</text>
    </>
  );
}

/** Interpolates the y coordinate of a line through these points. */
function interpolate(at: number, x: readonly number[], y: readonly number[]): number {
  const next = x.findIndex((position) => position >= at);
  if (next < 0) return y[y.length - 1]!;
  if (next === 0) return y[0]!;
  const fraction = (at - x[next - 1]!) / (x[next]! - x[next - 1]!);
  return y[next - 1]! + fraction * (y[next]! - y[next - 1]!);
}

function outline({ low, high }: Area, { x, y }: Frame): string {
  const upper = high.map((ns, index) => `${x[index]} ${y(ns)}`);
  const lower = low.map((ns, index) => `${x[index]} ${y(ns)}`).reverse();
  return `M${[...upper, ...lower].join("L")}z`;
}

const whisker = (x: number, low: number, high: number): string => `M${x - CAP} ${high}h${2 * CAP}M${x} ${high}V${low}M${x - CAP} ${low}h${2 * CAP}`;
const dot = (x: number, y: number): string => `M${x - DOT} ${y}a${DOT} ${DOT} 0 1 0 ${2 * DOT} 0a${DOT} ${DOT} 0 1 0 ${-2 * DOT} 0z`;

/** The chart as text, for screen readers. */
function description(series: RunSeries): string {
  const { points, per } = series;
  const times = points.map(({ value, ns }) => `${value}: ${duration(ns)}`).join(", ");
  return `${pointHeading(series)} and time per ${per}: ${times}`;
}
