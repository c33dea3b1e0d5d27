// The heat map of all ranks, with pointer and keyboard. The table of ranks below has the same content.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { LABEL_COLOUR } from "../../shared/colours";
import { useWidth } from "../../shared/page/media";
import { useTheme, type PageTheme } from "../../shared/page/theme";
import type { Job, RankTable } from "../../shared/report";
import { count, shortShare } from "../../shared/text/format";
import { Swatch } from "../../shared/widgets/swatch";
import { cellAfterKey, cellAt, cellText, colourOfRank, gridOf, measuresOf, scaleOf, type Grid, type Measure } from "./rank_grid";
import { labelOf } from "./words";

interface Props {
  readonly job: Job;
  readonly table: RankTable;
  /** The ranks in the timeline. */
  readonly selected: readonly number[];
  /** Adds a rank to the timeline or removes it; undefined without a timeline. */
  readonly toggle: ((rank: number) => void) | undefined;
  readonly openRank: (rank: number) => void;
}

const WIDTH = 860;

export function HeatMap({ job, table, selected, toggle, openRank }: Props) {
  const act = toggle ?? openRank;
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder, WIDTH);
  const theme = useTheme(holder);
  const measures = useMemo(() => measuresOf(table, labelOf), [table]);
  const [chosen, choose] = useState(measures[0]!.key);
  const measure = measures.find(({ key }) => key === chosen) ?? measures[0]!;
  const grid = useMemo(() => gridOf(table, job.missing_ranks, width), [table, job, width]);
  const [cursor, setCursor] = useState<number>(); // position in the cells
  const slow = useMemo(() => new Set(job.culprits.flatMap(({ ranks }) => (ranks.length < table.rank.length ? ranks : []))), [job]);
  const cell = cursor === undefined ? undefined : grid.cells[cursor];

  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || !theme) return;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(grid.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, { grid, measure, table, width, cursor, slow, selected: new Set(selected) }, theme);
  }, [theme, width, grid, measure, cursor, selected, slow]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && cell?.row !== undefined) {
      act(cell.rank);
      event.preventDefault();
      return;
    }
    const next = cursor === undefined && event.key.startsWith("Arrow") ? 0 : cellAfterKey(grid, event.key, cursor ?? 0);
    if (next === undefined) return;
    setCursor(next);
    event.preventDefault();
  };
  const positionOf = (event: PointerEvent | MouseEvent) => {
    const found = cellAt(grid, event.offsetX, event.offsetY);
    return found && grid.cells.indexOf(found);
  };

  return (
    <section class="heat-map">
      <header class="controls">
        <h2>{count(table.rank.length)} ranks</h2>
        <label>
          <span class="muted">Colour </span>
          <select value={measure.key} onChange={(event) => choose(event.currentTarget.value)}>
            {measures.map(({ key, title }) => (
              <option key={key} value={key}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </header>
      <div
        class="grid"
        ref={holder}
        tabIndex={0}
        role="group"
        aria-roledescription="heat map"
        aria-label={`Heat map of the ranks. The arrow keys move from rank to rank, Enter ${toggle ? "adds a rank to the timeline" : "shows the diagnosis of a rank"}. The table of ranks has the same content.`}
        onKeyDown={onKeyDown}
        onFocus={() => setCursor(cursor ?? 0)}
      >
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${grid.height}px` }}
          onPointerMove={(event) => setCursor(positionOf(event) ?? cursor)}
          onClick={(event) => {
            const at = positionOf(event);
            const clicked = at === undefined ? undefined : grid.cells[at];
            if (clicked?.row !== undefined) act(clicked.rank);
          }}
        />
      </div>
      <p class="reading" role="status">
        {cell ? cellText(cell, measure, table, job, labelOf) : <span class="muted">Point at a rank for its numbers; a click {toggle ? "adds it to the timeline" : "shows its diagnosis"}.</span>}
      </p>
      <Legend measure={measure} table={table} slow={slow.size > 0} missing={job.missing_ranks.length} chosen={toggle !== undefined} />
    </section>
  );
}

function Legend({ measure, table, slow, missing, chosen }: { measure: Measure; table: RankTable; slow: boolean; missing: number; chosen: boolean }) {
  const regimes = measure.shares ? [] : [...new Set(table.regime)];
  return (
    <ul class="legend">
      {measure.shares && (
        <li>
          {shortShare(0)}
          <span class="ramp" style={{ backgroundImage: `linear-gradient(to right, var(--sunken), ${colourOfRank({ ...measure, shares: [1] }, table, 0, 1)[0]})` }} />
          {shortShare(scaleOf(measure))} of the step
        </li>
      )}
      {regimes.map((regime) => (
        <li key={regime}>
          <Swatch regime={regime} lost={false} />
          {labelOf(regime)}
        </li>
      ))}
      {slow && (
        <li>
          <span class="mark slow" /> named as a cause
        </li>
      )}
      {chosen && (
        <li>
          <span class="mark chosen" /> in the timeline
        </li>
      )}
      {missing > 0 && (
        <li>
          <span class="mark missing" /> {count(missing)} without a usable recording
        </li>
      )}
    </ul>
  );
}

interface Picture {
  readonly grid: Grid;
  readonly measure: Measure;
  readonly table: RankTable;
  readonly width: number;
  readonly cursor: number | undefined;
  readonly slow: ReadonlySet<number>;
  readonly selected: ReadonlySet<number>;
}

function draw(canvas: CanvasRenderingContext2D, { grid, measure, table, width, cursor, slow, selected }: Picture, theme: PageTheme): void {
  const { cells, sections, size, height } = grid;
  const gap = size >= 12 ? 2 : 1;
  const inner = size - gap;
  const scale = scaleOf(measure);
  canvas.fillStyle = theme.page;
  canvas.fillRect(0, 0, width, height);
  canvas.font = `12px ${theme.font}`;
  canvas.textBaseline = "top";
  canvas.fillStyle = theme.muted;
  for (const { title, y } of sections) canvas.fillText(title, 0, y + 4);
  cells.forEach(({ rank, row, x, y }, position) => {
    let strong = false; // the colour carries dark labels, as everywhere
    if (row === undefined) {
      outline(canvas, x, y, inner, 1, theme.line);
    } else {
      canvas.globalAlpha = 1;
      canvas.fillStyle = theme.sunken;
      canvas.fillRect(x, y, inner, inner);
      const [colour, amount] = colourOfRank(measure, table, row, scale);
      strong = amount > 0.5;
      canvas.globalAlpha = amount;
      canvas.fillStyle = colour;
      canvas.fillRect(x, y, inner, inner);
      canvas.globalAlpha = 1;
    }
    if (size >= NUMBERED_SIZE) number(canvas, `${rank}`, x + inner / 2, y + inner / 2, row !== undefined && strong ? LABEL_COLOUR : theme.text);
    const thick = size >= 12 ? 2 : 1;
    if (selected.has(rank)) outline(canvas, x, y, inner, thick, theme.focus);
    if (slow.has(rank)) corner(canvas, x, y, inner, theme.text);
    if (position === cursor) outline(canvas, x - gap / 2, y - gap / 2, size, 2, theme.text);
  });
}

const NUMBERED_SIZE = 26; // px of a cell with room for three digits

function number(canvas: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string): void {
  canvas.fillStyle = colour;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  canvas.fillText(text, x, y);
  canvas.textAlign = "start";
}

function outline(canvas: CanvasRenderingContext2D, x: number, y: number, size: number, thick: number, colour: string): void {
  canvas.strokeStyle = colour;
  canvas.lineWidth = thick;
  canvas.strokeRect(x + thick / 2, y + thick / 2, size - thick, size - thick);
}

/** A triangle in the upper right corner. */
function corner(canvas: CanvasRenderingContext2D, x: number, y: number, size: number, colour: string): void {
  const side = Math.max(Math.round(size * 0.45), 4);
  canvas.fillStyle = colour;
  canvas.beginPath();
  canvas.moveTo(x + size - side, y);
  canvas.lineTo(x + size, y);
  canvas.lineTo(x + size, y + side);
  canvas.fill();
}
