// The roofline: the throughput of operators against the limit of the device at their arithmetic intensity.
import { useRef, useState } from "preact/hooks";
import { colourOf } from "../../shared/colours";
import { useWidth } from "../../shared/page/media";
import { addStyle } from "../../shared/page/style_sheet";
import type { Roofline as RooflineMessage, RoofPoint } from "../../shared/report";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { count, duration, flops, intensity, rate, roundFlops, share } from "../../shared/text/format";
import { words } from "../../shared/text/identifier";
import { CodeBlock } from "../../shared/widgets/code_block";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { axes, path, type Axes } from "./axes";
import sheet from "./roofline.css";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

export function RooflineView({ client, entry, report }: ViewProps) {
  return (
    <Request
      subject={`${entry.id} roofline`}
      version={report}
      waiting="Reading the recording…"
      send={(signal, onProgress) => poll(() => client.tables(entry.id, signal), signal, onProgress)}
    >
      {({ tables }) =>
        tables?.roofline && !tables.roofline.problem ? <Plot roofline={tables.roofline} /> : <NoRoofline roofline={tables?.roofline} />
      }
    </Request>
  );
}

function NoRoofline({ roofline }: { roofline: RooflineMessage | undefined }) {
  return (
    <section>
      <h2>Roofline</h2>
      <p>{roofline?.problem || "Nothing ran in this recording."}</p>
      {roofline?.fix && (
        <>
          <p class="muted">To record what is missing:</p>
          <CodeBlock text={roofline.fix} label="code that records what is missing" />
        </>
      )}
    </section>
  );
}

const WIDTH = 860;
const HEIGHT = 400;
const SHAPES = ["circle", "square", "diamond", "triangle"] as const; // one per precision, in addition to its colour
const HUES = ["compute", "memory", "communication", "input"];

function Plot({ roofline }: { roofline: RooflineMessage }) {
  const [hovered, setHovered] = useState<RoofPoint>();
  const plotted = plottedPoints(roofline.points);
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const frame = axes({ ...roofline, points: plotted }, width, HEIGHT);
  const precisions = [...new Set(roofline.points.map(({ precision }) => precision))];
  return (
    <section class="roofline">
      <h2>Roofline</h2>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={`Roofline of ${count(plotted.length)} operators; the table below has the same content`}>
        <Grid frame={frame} />
        <path class="roof" d={path(frame, roofline.bandwidth, Math.max(...roofline.roofs.map((roof) => roof.flops_per_s)))} />
        {roofline.roofs.slice(1).map((roof) => (
          <path key={roof.precision} class="roof lower" d={path(frame, roofline.bandwidth, roof.flops_per_s)} />
        ))}
        <g class="points" onPointerLeave={() => setHovered(undefined)}>
          {plotted.map((point, index) => (
            <path
              key={index}
              d={symbol(SHAPES[precisions.indexOf(point.precision) % SHAPES.length]!, frame.x(point.intensity), frame.y(point.flops_per_s), size(point))}
              fill={colourOf(HUES[precisions.indexOf(point.precision) % HUES.length]!)}
              class={hovered === point ? "hovered" : undefined}
              onPointerEnter={() => setHovered(point)}
            />
          ))}
        </g>
        {roofline.roofs.map((roof) => (
          <text key={roof.precision} class="roof-name" x={width - 8} y={frame.y(roof.flops_per_s) - 6} text-anchor="end">
            {words(roof.precision)} {flops(roof.flops_per_s)}
          </text>
        ))}
        <text class="axis" x={width / 2} y={HEIGHT - 4} text-anchor="middle">arithmetic intensity (FLOP/B)</text>
      </svg>
      <ul class="legend">
        {precisions.map((precision, index) => (
          <li key={precision}>
            <svg viewBox="-8 -8 16 16" width="14" height="14" aria-hidden="true">
              <path d={symbol(SHAPES[index % SHAPES.length]!, 0, 0, 6)} fill={colourOf(HUES[index % HUES.length]!)} />
            </svg>
            {words(precision)}
          </li>
        ))}
        <li class="muted">memory {rate(roofline.bandwidth)}; peaks from the {roofline.basis}; the area of a point is its time</li>
      </ul>
      <p class="reading">
        {hovered ? (
          <>
            <b>{hovered.name}</b> {hovered.shapes}: {flops(hovered.flops_per_s)}, {share(shareOfRoof(hovered, roofline))} of its roof, {duration(hovered.total_ns)}
          </>
        ) : (
          <span class="muted">
            An operator far below its roof is limited by something else.<span class="on-screen"> Point at an operator for its numbers.</span>
          </span>
        )}
      </p>
      <SortableTable
        caption="Operators"
        rows={roofline.points}
        columns={columnsOf(roofline)}
        initial={{ by: "time", descending: true }}
        searchText={({ name, shapes, precision }) => `${name} ${shapes} ${precision}`}
      />
    </section>
  );
}

const MIN_SHARE = 0.001; // of the window

/** The points with enough time to be plotted. The others would only stretch the axes; they are in the table. */
function plottedPoints(points: readonly RoofPoint[]): readonly RoofPoint[] {
  const plotted = points.filter(({ share: part }) => part >= MIN_SHARE);
  return plotted.length > 0 ? plotted : points;
}

/** The throughput of a point as a share of its roof. */
function shareOfRoof({ precision, intensity: x, flops_per_s }: RoofPoint, { roofs, bandwidth }: RooflineMessage): number {
  const peak = roofs.find((roof) => roof.precision === precision)?.flops_per_s ?? Infinity;
  return flops_per_s / Math.min(peak, bandwidth * x);
}

const columnsOf = (roofline: RooflineMessage): readonly Column<RoofPoint>[] => [
  {
    key: "name",
    title: "Operator",
    figure: false,
    value: ({ name }) => name,
    cell: ({ name, shapes }) => (
      <>
        {name}
        <small>{shapes}</small>
      </>
    ),
  },
  { key: "type", title: "Type", figure: false, value: ({ precision }) => precision, cell: ({ precision }) => words(precision) },
  { key: "time", title: "Time", figure: true, value: ({ total_ns }) => total_ns, cell: ({ total_ns }) => duration(total_ns) },
  { key: "share", title: "Share", figure: true, value: (row) => row.share, cell: (row) => share(row.share) },
  { key: "calls", title: "Calls", figure: true, value: ({ calls }) => calls, cell: ({ calls }) => count(calls) },
  { key: "intensity", title: "Intensity", figure: true, value: (row) => row.intensity, cell: (row) => intensity(row.intensity) },
  { key: "rate", title: "Reached", figure: true, value: ({ flops_per_s }) => flops_per_s, cell: ({ flops_per_s }) => flops(flops_per_s) },
  { key: "near", title: "Of its roof", figure: true, value: (row) => shareOfRoof(row, roofline), cell: (row) => share(shareOfRoof(row, roofline)) },
];

const size = ({ share: part }: RoofPoint): number => Math.max(3.5, Math.sqrt(Math.max(part, 0)) * 34);

function symbol(shape: (typeof SHAPES)[number], x: number, y: number, r: number): string {
  switch (shape) {
    case "circle":
      return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case "square":
      return `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "diamond":
      return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}z`;
    case "triangle":
      return `M${x} ${y - r}L${x + r} ${y + r}L${x - r} ${y + r}z`;
  }
}

function Grid({ frame }: { frame: Axes }) {
  return (
    <g class="grid">
      {frame.xTicks.map((tick) => (
        <g key={`x${tick}`}>
          <path d={`M${frame.x(tick)} ${frame.top}V${frame.bottom}`} />
          <text x={frame.x(tick)} y={frame.bottom + 16} text-anchor={frame.x(tick) > frame.right - 30 ? "end" : "middle"}>{count(tick)}</text>
        </g>
      ))}
      {frame.yTicks.map((tick) => (
        <g key={`y${tick}`}>
          <path d={`M${frame.left} ${frame.y(tick)}H${frame.right}`} />
          <text x={frame.left - 8} y={frame.y(tick) + 4} text-anchor="end">{roundFlops(tick)}</text>
        </g>
      ))}
    </g>
  );
}
