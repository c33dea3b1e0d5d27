// The memory over the step of the peak, as stacked areas with the peak marked.
import { useRef } from "preact/hooks";
import { memoryColourOf } from "../../shared/colours";
import { useWidth } from "../../shared/page/media";
import type { MemoryCurve } from "../../shared/report";
import { bytes, duration } from "../../shared/text/format";
import { outline, stacked } from "./stack";

const WIDTH = 860;
const HEIGHT = 300;
const LEFT = 76;
const RIGHT = 20;
const TOP = 26;
const BOTTOM = 34;
const LINES = 4;

export function Curve({ curve }: { curve: MemoryCurve }) {
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const areas = stacked(curve);
  const { times_ns: times, peak } = curve;
  const [begin, end] = [0, Math.max(curve.step_ns ?? 0, times[times.length - 1] ?? 0)];
  const totals = areas[areas.length - 1]?.high ?? [];
  const highest = Math.max(...totals, 1);
  const bottom = HEIGHT - BOTTOM;
  const x = times.map((time) => LEFT + ((time - begin) / (end - begin || 1)) * (width - LEFT - RIGHT));
  const y = (value: number) => bottom - (value / highest) * (bottom - TOP);
  const [at, top] = [x[peak] ?? LEFT, totals[peak] ?? highest];
  const leftOfLine = at > width / 2;
  const description = `Memory over one step of ${duration(end - begin)}: at most ${bytes(top)}, after ${duration((times[peak] ?? begin) - begin)}`;
  return (
    <section class="memory-curve">
      <h2>Over the step of the peak</h2>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={description}>
        {Array.from({ length: LINES + 1 }, (_, index) => (highest * index) / LINES).map((value) => (
          <g class="grid" key={value}>
            <path d={`M${LEFT} ${y(value)}H${width - RIGHT}`} />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">{value === 0 ? "0" : bytes(value)}</text>
          </g>
        ))}
        {areas.map((area) => (
          <path key={area.kind} class="area" d={outline(area, x, y, width - RIGHT)} fill={memoryColourOf(area.kind)}>
            <title>{area.title}</title>
          </path>
        ))}
        <g class="peak">
          <path d={`M${at} ${TOP - 12}V${bottom}`} />
          <text x={leftOfLine ? at - 6 : at + 6} y={TOP - 8} text-anchor={leftOfLine ? "end" : "start"}>{`peak: ${bytes(top)}`}</text>
        </g>
        <text x={LEFT} y={HEIGHT - 10}>{duration(0)}</text>
        <text x={width - RIGHT} y={HEIGHT - 10} text-anchor="end">{duration(end - begin)}</text>
      </svg>
      <ul class="legend">
        {[...areas].reverse().map(({ kind, title }) => (
          <li key={kind}>
            <span class="swatch" style={{ backgroundColor: memoryColourOf(kind) }} />
            {title}
          </li>
        ))}
        <li class="muted">without memory that the allocator caches</li>
      </ul>
    </section>
  );
}
