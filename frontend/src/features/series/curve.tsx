// A sweep as a curve: the time over what varies, cut into regimes below it, how far it is known, and where more brings little.
import { useRef } from "preact/hooks";
import { colourOf, isLost, LABEL_COLOUR } from "../../shared/colours";
import { duration, roundDuration } from "../../shared/text/format";
import { useWidth } from "../../shared/page/media";
import type { RunSeries } from "../../shared/report";
import { areas, type Area } from "./areas";
import { placed, ticks } from "./scale";
import { heading, kneeOf } from "./summary";
import { Swatch } from "../../shared/widgets/swatch";

const WIDTH = 860;
const HEIGHT = 380;
const LEFT = 64;
const RIGHT = 26;
const INSET = 14; // the first point stands clear of the axis, the last of its end
const TOP = 34;
const BOTTOM = 46;
const CAP = 5; // half the width of an error bar's ends
const DOT = 4.5;
const TICKS = 5;
const SPACING = { linear: "", logarithmic: ", in powers", even: ", at equal distances" };

interface Frame {
  readonly width: number;
  readonly bottom: number;
  readonly x: readonly number[]; // of each point
  readonly y: (ns: number) => number;
  readonly grid: readonly number[]; // ns
}

export function Curve({ told }: { told: RunSeries }) {
  const { points } = told;
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const spacing = placed(points.map(({ value }) => Number(value)));
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
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={`${spokenOf(told)}; the table below holds the same`}>
        <Grid frame={frame} />
        {stack.map((area) => (
          <g key={area.regime}>
            <path class="area" d={outline(area, frame)} fill={colourOf(area.regime)} />
            {isLost(area.regime) && <path class="lost" d={hatching(area, frame)} />}
          </g>
        ))}
        {stack.map((area) => (
          <Name key={area.regime} area={area} frame={frame} />
        ))}
        <Knee told={told} frame={frame} />
        <path class="curve" d={points.map(({ ns }, place) => `${place === 0 ? "M" : "L"}${frame.x[place]} ${frame.y(ns)}`).join("")} />
        {points.map(({ ns, low_ns, high_ns }, place) => (
          <g key={place}>
            {high_ns > low_ns && <path class="error" d={whisker(frame.x[place]!, frame.y(low_ns), frame.y(high_ns))} />}
            <path class="point" d={dot(frame.x[place]!, frame.y(ns))} />
          </g>
        ))}
        {points.map(({ value }, place) => (
          <text key={place} class="value" x={frame.x[place]} y={bottom + 18} text-anchor="middle">{value}</text>
        ))}
        <text x={(LEFT + right) / 2} y={HEIGHT - 6} text-anchor="middle">{`${told.varies}${SPACING[spacing.kind]}`}</text>
      </svg>
      <ul class="legend">
        {[...stack].reverse().filter(({ named }) => named).map(({ regime, title }) => (
          <li key={regime}>
            <Swatch regime={regime} />
            {title}
          </li>
        ))}
        <li class="muted">the line is the whole time, its bars say how far that is known; hatched: the device is kept from working</li>
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

/** The knee's line and its name, on the side where there is room. */
function Knee({ told, frame: { x, bottom, width } }: { told: RunSeries; frame: Frame }) {
  const knee = kneeOf(told);
  const at = knee && x[told.points.indexOf(knee)];
  if (!knee || at === undefined) return null;
  const toTheLeft = at > width * 0.6;
  return (
    <g class="knee">
      <path d={`M${at} ${TOP - 18}V${bottom}`} />
      <text x={toTheLeft ? at - 7 : at + 7} y={TOP - 10} text-anchor={toTheLeft ? "end" : "start"}>{`knee: ${knee.value}`}</text>
    </g>
  );
}

const LETTER = 7; // px, about
const BESIDE = 4; // px between a name and the end of its area
const TALL = 19; // px that a name needs

/** A regime's name where its area is thickest, if it has room there: colours alone do not tell. */
function Name({ area: { regime, title, low, high }, frame: { x, y, width } }: { area: Area; frame: Frame }) {
  const thick = high.map((to, place) => y(low[place]!) - y(to));
  const place = thick.indexOf(Math.max(...thick));
  if (thick[place]! < TALL) return null;
  const half = (title.length * LETTER) / 2 + BESIDE;
  const [leftmost, rightmost] = [LEFT + INSET + half, width - RIGHT - half];
  const centre = Math.min(Math.max(x[place]!, leftmost), rightmost);
  // The name must lie inside of its area over its whole length, not just where that is thickest.
  const ends = [centre - half, centre, centre + half].map((at) => [between(at, x, low.map(y)), between(at, x, high.map(y))] as const);
  const [floor, ceiling] = [Math.min(...ends.map(([from]) => from)), Math.max(...ends.map(([, to]) => to))];
  if (floor - ceiling < TALL) return null;
  // At the ends it is held by its own end: how long it gets, only the browser knows.
  const held = centre === leftmost ? "start" : centre === rightmost ? "end" : "middle";
  const from = { start: centre - half + BESIDE, middle: centre, end: centre + half - BESIDE }[held];
  const middle = (floor + ceiling) / 2;
  return (
    <>
      {isLost(regime) && <rect x={centre - half} y={middle - TALL / 2} width={2 * half} height={TALL} fill={colourOf(regime)} />}
      <text class="regime" x={from} y={middle + 4} text-anchor={held} style={{ fill: LABEL_COLOUR }}>{title}</text>
    </>
  );
}

/** The height of a line through these points. */
function between(at: number, x: readonly number[], y: readonly number[]): number {
  const next = x.findIndex((one) => one >= at);
  if (next < 0) return y[y.length - 1]!;
  if (next === 0) return y[0]!;
  const part = (at - x[next - 1]!) / (x[next]! - x[next - 1]!);
  return y[next - 1]! + part * (y[next]! - y[next - 1]!);
}

function outline({ low, high }: Area, { x, y }: Frame): string {
  const there = high.map((ns, place) => `${x[place]} ${y(ns)}`);
  const back = low.map((ns, place) => `${x[place]} ${y(ns)}`).reverse();
  return `M${[...there, ...back].join("L")}z`;
}

const HATCH = 7; // px between strokes

/** Strokes from the lower end of an area to its upper one. */
function hatching({ low, high }: Area, { x, y }: Frame): string {
  const [from, to] = [x[0]!, x[x.length - 1]!];
  const places = Array.from({ length: Math.max(0, Math.floor((to - from) / HATCH)) }, (_, place) => from + (place + 0.5) * HATCH);
  return places.map((at) => `M${at} ${between(at, x, low.map(y))}V${between(at, x, high.map(y))}`).join("");
}

const whisker = (x: number, low: number, high: number): string => `M${x - CAP} ${high}h${2 * CAP}M${x} ${high}V${low}M${x - CAP} ${low}h${2 * CAP}`;
const dot = (x: number, y: number): string => `M${x - DOT} ${y}a${DOT} ${DOT} 0 1 0 ${2 * DOT} 0a${DOT} ${DOT} 0 1 0 ${-2 * DOT} 0z`;

function spokenOf(told: RunSeries): string {
  const { points, per, knee } = told;
  const said = points.map(({ value, ns }) => `${value}: ${duration(ns)}`).join(", ");
  return `${heading(told)} and time per ${per}: ${said}${knee ? `; knee at ${knee.value}` : ""}`;
}
