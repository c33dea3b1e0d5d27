// The memory in tensors over the steps of the recording.
import { useRef } from "preact/hooks";
import { memoryColourOf } from "../../shared/colours";
import { useWidth } from "../../shared/page/media";
import type { MemoryHistory } from "../../shared/report";
import { bytes, count } from "../../shared/text/format";
import { growthText } from "./growth";

const WIDTH = 860;
const HEIGHT = 170;
const [LEFT, RIGHT, TOP, BOTTOM] = [76, 20, 10, 26];

export function History({ history }: { history: MemoryHistory }) {
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const { peak_bytes: peaks, end_bytes: ends } = history;
  const per = history.steps || 1;
  const highest = Math.max(...peaks, 1);
  const bottom = HEIGHT - BOTTOM;
  const slot = (width - LEFT - RIGHT) / peaks.length;
  const y = (value: number) => bottom - (value / highest) * (bottom - TOP);
  const text = growthText(history);
  const unit = per === 1 ? "step" : `${count(per)} steps`;
  return (
    <section class="memory-curve">
      <h2>Over the steps</h2>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={`Peak of each ${unit}: ${peaks.map(bytes).join(", ")}. ${text}`}>
        {[0, 0.5, 1].map((part) => (
          <g class="grid" key={part}>
            <path d={`M${LEFT} ${y(part * highest)}H${width - RIGHT}`} />
            <text x={LEFT - 8} y={y(part * highest) + 4} text-anchor="end">{part === 0 ? "0" : bytes(part * highest)}</text>
          </g>
        ))}
        {peaks.map((peak, index) => (
          <g key={index}>
            <title>{`${nameOf(index, per)}: ${bytes(peak)} at its peak, ${bytes(ends[index] ?? 0)} at its end`}</title>
            <path d={`M${LEFT + (index + 0.08) * slot} ${bottom}V${y(peak)}h${0.84 * slot}V${bottom}Z`} fill={memoryColourOf("cache")} />
            <path d={`M${LEFT + (index + 0.08) * slot} ${bottom}V${y(ends[index] ?? 0)}h${0.84 * slot}V${bottom}Z`} fill={memoryColourOf("parameters")} />
          </g>
        ))}
        <text x={LEFT} y={HEIGHT - 8}>{nameOf(0, per)}</text>
        <text x={width - RIGHT} y={HEIGHT - 8} text-anchor="end">{nameOf(peaks.length - 1, per)}</text>
      </svg>
      <ul class="legend">
        <li>
          <span class="swatch" style={{ backgroundColor: memoryColourOf("cache") }} />
          at the peak of the {unit}
        </li>
        <li>
          <span class="swatch" style={{ backgroundColor: memoryColourOf("parameters") }} />
          at the end
        </li>
        <li class="muted">{text}</li>
      </ul>
    </section>
  );
}

const nameOf = (index: number, per: number): string => (per === 1 ? `step ${index + 1}` : `steps ${index * per + 1} to ${(index + 1) * per}`);
