// The roofline: what operators reach, against what the device can do with so much arithmetic for each byte.
import { useRef, useState } from "preact/hooks";
import { settled } from "../../shared/server/polling";
import { colourOf } from "../../shared/colours";
import { count, duration, flops, intensity, rate, roundFlops, share } from "../../shared/text/format";
import { words } from "../../shared/text/names";
import { useWidth } from "../../shared/page/media";
import type { Roofline as Message, RoofPoint } from "../../shared/report";
import { addStyle } from "../../shared/page/style_sheet";
import { axes, path, type Axes } from "./axes";
import charts from "../../shared/style/charts.css";
import sheet from "../../shared/style/view.css";
import { Awaited } from "../../shared/widgets/request";
import { Code } from "../../shared/widgets/code_block";
import type { EvidenceProps } from "../../shared/run/view_props";
import { Sortable, type Column } from "../../shared/widgets/sortable_table";

addStyle(charts);
addStyle(sheet);

export function RooflineView({ client, entry, report }: EvidenceProps) {
  return (
    <Awaited
      about={`${entry.id} roofline`}
      since={report}
      waiting="Reading the recording…"
      ask={(signal, tell) => settled(() => client.tables(entry.id, signal), signal, tell)}
    >
      {({ tables }) =>
        tables?.roofline && !tables.roofline.problem ? <Plot roofline={tables.roofline} /> : <Without roofline={tables?.roofline} />
      }
    </Awaited>
  );
}

function Without({ roofline }: { roofline: Message | undefined }) {
  return (
    <section>
      <h2>Roofline</h2>
      <p>{roofline?.problem || "Nothing ran in this recording."}</p>
      {roofline?.fix && (
        <>
          <p class="muted">This records them:</p>
          <Code text={roofline.fix} label="what records shapes" />
        </>
      )}
    </section>
  );
}

const WIDTH = 860;
const HEIGHT = 400;
const SHAPES = ["circle", "square", "diamond", "triangle"] as const; // of precisions, beside their colours
const HUES = ["compute", "memory", "communication", "input"];

function Plot({ roofline }: { roofline: Message }) {
  const [pointed, point] = useState<RoofPoint>();
  const plotted = worthPlotting(roofline.points);
  const drawing = useRef<SVGSVGElement>(null);
  const width = useWidth(drawing, WIDTH);
  const frame = axes({ ...roofline, points: plotted }, width, HEIGHT);
  const precisions = [...new Set(roofline.points.map(({ precision }) => precision))];
  return (
    <section class="roofline">
      <h2>Roofline</h2>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} ref={drawing} role="img" aria-label={`Roofline of ${count(plotted.length)} operators; the table below holds the same`}>
        <Grid frame={frame} />
        <path class="roof" d={path(frame, roofline.bandwidth, Math.max(...roofline.roofs.map((roof) => roof.flops_per_s)))} />
        {roofline.roofs.slice(1).map((roof) => (
          <path key={roof.precision} class="roof lower" d={path(frame, roofline.bandwidth, roof.flops_per_s)} />
        ))}
        <g class="points" onPointerLeave={() => point(undefined)}>
          {plotted.map((one, index) => (
            <path
              key={index}
              d={symbol(SHAPES[precisions.indexOf(one.precision) % SHAPES.length]!, frame.x(one.intensity), frame.y(one.flops_per_s), size(one))}
              fill={colourOf(HUES[precisions.indexOf(one.precision) % HUES.length]!)}
              class={pointed === one ? "pointed" : undefined}
              onPointerEnter={() => point(one)}
            />
          ))}
        </g>
        {roofline.roofs.map((roof) => (
          <text key={roof.precision} class="roof-name" x={width - 8} y={frame.y(roof.flops_per_s) - 6} text-anchor="end">
            {words(roof.precision)} {flops(roof.flops_per_s)}
          </text>
        ))}
        <text class="axis" x={width / 2} y={HEIGHT - 4} text-anchor="middle">arithmetic for each byte that must move (FLOP/B)</text>
      </svg>
      <ul class="legend">
        {precisions.map((precision, place) => (
          <li key={precision}>
            <svg viewBox="-8 -8 16 16" width="14" height="14" aria-hidden="true">
              <path d={symbol(SHAPES[place % SHAPES.length]!, 0, 0, 6)} fill={colourOf(HUES[place % HUES.length]!)} />
            </svg>
            {words(precision)}
          </li>
        ))}
        <li class="muted">memory {rate(roofline.bandwidth)}; peaks from the {roofline.basis}; areas are time</li>
      </ul>
      <p class="reading">
        {pointed ? (
          <>
            <b>{pointed.name}</b> {pointed.shapes}: {flops(pointed.flops_per_s)}, {share(near(pointed, roofline))} of its roof, {duration(pointed.total_ns)}
          </>
        ) : (
          <span class="muted">
            What lies far below its roof is not bounded by it.<span class="on-screen"> Point at an operator to read it.</span>
          </span>
        )}
      </p>
      <Sortable
        caption="The same as a table"
        rows={roofline.points}
        columns={columnsOf(roofline)}
        first={{ by: "time", down: true }}
        words={({ name, shapes, precision }) => `${name} ${shapes} ${precision}`}
      />
    </section>
  );
}

const LEAST_SHARE = 0.001; // of the window

/** Points that take hardly any time would stretch the axes for nothing: they stand in the table alone. */
function worthPlotting(points: readonly RoofPoint[]): readonly RoofPoint[] {
  const worth = points.filter(({ share: of }) => of >= LEAST_SHARE);
  return worth.length > 0 ? worth : points;
}

/** Share of the roof over a point. */
function near({ precision, intensity: x, flops_per_s }: RoofPoint, { roofs, bandwidth }: Message): number {
  const peak = roofs.find((roof) => roof.precision === precision)?.flops_per_s ?? Infinity;
  return flops_per_s / Math.min(peak, bandwidth * x);
}

const columnsOf = (roofline: Message): readonly Column<RoofPoint>[] => [
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
  { key: "near", title: "Of its roof", figure: true, value: (row) => near(row, roofline), cell: (row) => share(near(row, roofline)) },
];

const size = ({ share: of }: RoofPoint): number => Math.max(3.5, Math.sqrt(Math.max(of, 0)) * 34);

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
