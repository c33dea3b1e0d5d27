// Draws the timeline on a canvas. Each frame draws everything that is visible.
import { colourOf, isLost, LABEL_COLOUR } from "../../shared/colours";
import type { PageTheme } from "../../shared/page/theme";
import { lengthOf, ticks, type Span } from "../../shared/run/viewport";
import { duration } from "../../shared/text/format";
import type { Block, VisibleTiles } from "./hit";
import { RULER, type Row, type Track } from "./layout";

export interface Theme extends PageTheme {
  readonly keys: ReadonlyMap<string, string>;
}

export interface Picture {
  readonly span: Span;
  readonly origin: number; // zero of the ruler, ns
  readonly width: number; // px
  readonly height: number;
  readonly ratio: number; // device pixels per px
  readonly tracks: readonly Track[];
  readonly keys: readonly string[];
  readonly titles: ReadonlyMap<string, string>; // of regimes
  readonly tiles: VisibleTiles;
  readonly marked: Span | undefined;
  readonly markLabel: string;
  readonly selected: Block | undefined;
  readonly namesAbove: boolean;
}

const CHARACTER_WIDTH = 6.2; // px, at a font size of 11 px
const MIN_LABEL_WIDTH = 26; // px

export function paint(canvas: CanvasRenderingContext2D, picture: Picture, theme: Theme): void {
  const { width, height, ratio, span } = picture;
  canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.fillStyle = theme.page;
  canvas.fillRect(0, 0, width, height);
  const scale = width / lengthOf(span);
  ruler(canvas, picture, theme, scale);
  for (const track of picture.tracks) {
    if (picture.namesAbove) {
      canvas.fillStyle = theme.muted;
      canvas.font = `11px ${theme.font}`;
      canvas.textBaseline = "alphabetic";
      canvas.fillText(track.title, 0, track.top - 4);
    }
    for (const row of track.rows) lane(canvas, picture, theme, track, row, scale);
  }
  mark(canvas, picture, theme, scale);
  select(canvas, picture, theme, scale);
}

function ruler(canvas: CanvasRenderingContext2D, { span, origin, width, height }: Picture, theme: Theme, scale: number): void {
  canvas.font = `11px ${theme.font}`;
  canvas.textBaseline = "middle";
  canvas.textAlign = "left";
  for (const tick of ticks(span, origin, Math.max(2, Math.floor(width / 110)))) {
    const x = Math.round((tick - span.begin) * scale);
    canvas.fillStyle = theme.line;
    canvas.fillRect(x, 0, 1, height);
    canvas.fillStyle = theme.muted;
    canvas.fillText(duration(tick - origin), x + 4, RULER / 2);
  }
  canvas.fillStyle = theme.line;
  canvas.fillRect(0, RULER - 1, width, 1);
}

function lane(canvas: CanvasRenderingContext2D, picture: Picture, theme: Theme, track: Track, row: Row, scale: number): void {
  const { span, tiles, keys, width } = picture;
  const labelled = row.height >= 12;
  const lost: (readonly [number, number])[] = [];
  const labels: Label[] = [];
  for (const { tile, part } of tiles) {
    const strip = tile.strips[row.lane];
    if (!strip) continue;
    const [from, to] = [Math.max(part.begin, span.begin), Math.min(part.end, span.end)];
    const shift = tile.origin - span.begin;
    // Tiles meet at whole pixels. Otherwise a line would be visible between them.
    const [edge, farEdge] = [Math.round((from - span.begin) * scale), Math.round((to - span.begin) * scale)];
    for (let index = 0; index < strip.begin.length; index++) {
      const begin = strip.begin[index]! + tile.origin;
      const end = begin + strip.length[index]!;
      if (end <= from || begin >= to) continue;
      const left = Math.max((strip.begin[index]! + shift) * scale, edge);
      const right = Math.min((strip.begin[index]! + strip.length[index]! + shift) * scale, farEdge);
      const blockWidth = Math.max(right - left, 0.7);
      const key = keys[strip.key[index]!] ?? "";
      canvas.globalAlpha = strip.count[index]! > 1 ? 0.35 + 0.65 * strip.busy[index]! : 1;
      canvas.fillStyle = theme.keys.get(key) ?? colourOf(key);
      // A thin gap between neighbours, if there is room for it.
      const bar = row.height * levelOf(key);
      canvas.fillRect(left, row.top + row.height - bar, blockWidth > 3 && end <= to ? blockWidth - 0.6 : blockWidth, bar);
      canvas.globalAlpha = 1;
      if (track.group === "account" && blockWidth > 2 && isLost(key)) lost.push([left, blockWidth - 0.6]);
      if (!labelled) continue;
      const start = Math.max(begin, span.begin);
      if (start < part.begin || start >= part.end) continue; // the label was drawn by the previous tile
      const room = Math.min((end - span.begin) * scale, width) - left;
      if (room < MIN_LABEL_WIDTH) continue;
      if (strip.count[index]! === 1) labels.push({ key, name: tile.names[strip.name[index]!] ?? "", left, room });
    }
  }
  hatch(canvas, lost, row, width, theme);
  // After all blocks: a block may continue in the next tile, which would cover its label.
  for (const text of labels) label(canvas, picture, theme, track, row, text);
}

/** The height of a bar: tenths of the range of a counter; all of the row for other items. */
const levelOf = (key: string): number => (key.startsWith("counter") ? (Number(key.slice("counter".length)) + 1) / 10 : 1);

interface Label {
  readonly key: string;
  readonly name: string;
  readonly left: number; // px
  readonly room: number;
}

const HATCH = 7; // px between strokes
const HATCHED = 6; // px at the lower edge, below the labels

/** Hatches lost time, so that it differs by more than its colour. A single path is fast enough for every frame. */
function hatch(canvas: CanvasRenderingContext2D, lost: readonly (readonly [number, number])[], row: Row, width: number, theme: Theme): void {
  if (lost.length === 0) return;
  const bottom = row.top + row.height;
  canvas.save();
  canvas.beginPath();
  for (const [left, blockWidth] of lost) canvas.rect(left, bottom - HATCHED, blockWidth, HATCHED);
  canvas.clip();
  canvas.beginPath();
  for (let x = -HATCHED; x < width; x += HATCH) {
    canvas.moveTo(x, bottom);
    canvas.lineTo(x + HATCHED, bottom - HATCHED);
  }
  canvas.strokeStyle = theme.page;
  canvas.globalAlpha = 0.75;
  canvas.lineWidth = 1.6;
  canvas.stroke();
  canvas.restore();
}

function label(canvas: CanvasRenderingContext2D, { titles }: Picture, theme: Theme, track: Track, row: Row, { key, name, left, room }: Label): void {
  const characters = Math.floor((room - 8) / CHARACTER_WIDTH);
  if (characters < 3) return;
  const text = name || titles.get(key) || key;
  canvas.font = `11px ${theme.font}`;
  canvas.textBaseline = "middle";
  canvas.fillStyle = track.group === "steps" || key === "mark" ? theme.text : LABEL_COLOUR;
  canvas.fillText(text.length <= characters ? text : `${text.slice(0, characters - 1)}…`, left + 4, row.top + row.height / 2 + 0.5);
}

function mark(canvas: CanvasRenderingContext2D, { span, marked, markLabel, height, width }: Picture, theme: Theme, scale: number): void {
  if (!marked || marked.end < span.begin || marked.begin > span.end) return;
  const left = Math.max((marked.begin - span.begin) * scale, -2);
  const right = Math.min(Math.max((marked.end - span.begin) * scale, left + 2), width + 2);
  canvas.fillStyle = theme.focus;
  canvas.globalAlpha = 0.1;
  canvas.fillRect(left, RULER, right - left, height - RULER);
  canvas.globalAlpha = 1;
  canvas.fillRect(left, 0, 1.5, height);
  canvas.fillRect(right - 1.5, 0, 1.5, height);
  canvas.font = `600 11px ${theme.font}`;
  const labelWidth = Math.min(canvas.measureText(markLabel).width + 12, width);
  const x = Math.min(Math.max(left, 0), width - labelWidth);
  canvas.fillRect(x, 3, labelWidth, RULER - 8);
  canvas.fillStyle = theme.page;
  canvas.textBaseline = "middle";
  canvas.fillText(markLabel, x + 6, RULER / 2 - 0.5, labelWidth - 10);
}

function select(canvas: CanvasRenderingContext2D, { span, selected }: Picture, theme: Theme, scale: number): void {
  const row = selected?.track.rows.find(({ lane: index }) => index === selected.lane);
  if (!selected || !row) return;
  const left = (selected.begin - span.begin) * scale;
  const blockWidth = Math.max(lengthOf(selected) * scale, 2);
  canvas.strokeStyle = theme.text;
  canvas.lineWidth = 2;
  canvas.strokeRect(left - 1, row.top - 1, blockWidth + 2, row.height + 2);
}
