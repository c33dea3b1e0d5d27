// The grid of all ranks of a job: where each rank is drawn, its value and its colour. Pure.
import { colourOf } from "../../shared/colours";
import type { Job, RankTable } from "../../shared/report";
import { shortShare } from "../../shared/text/format";

/** What the colour of a rank shows: "regime", or the name of a column of shares. */
export interface Measure {
  readonly key: string;
  readonly title: string;
  /** The colour key of the highest value; undefined if each rank has a colour of its own. */
  readonly colour?: string;
  /** The share of each rank of the table; undefined for "regime". */
  readonly shares?: readonly number[];
}

const LEAST_COST = 0.05; // of the step: less is noise, and waiting shows more, as between the stages of a pipeline

/** The measures that this table has, the most useful first. */
export function measuresOf(table: RankTable, titleOf: (regime: string) => string): readonly Measure[] {
  const paired: readonly Measure[] = [
    { key: "excess", title: "Cost: own work beyond that of its peers", colour: "input", shares: table.excess_share },
    { key: "wait", title: "Waiting for other ranks", colour: "communication", shares: table.wait_share },
    { key: "wire", title: "Waiting for transfers", colour: "transfer", shares: table.wire_share },
  ];
  const regimes = table.account.map(({ regime, share }) => ({ key: `share ${regime}`, title: `Share of ${titleOf(regime)}`, colour: regime, shares: share }));
  const first = table.excess_share.some((share) => share >= LEAST_COST) ? paired : [...paired.slice(1), ...paired.slice(0, 1)];
  return [...first.filter(({ shares }) => shares?.length), { key: "regime", title: "Its own verdict" }, ...regimes];
}

/** A rank in the grid. `row` is its row in the table; undefined if there is no usable recording of it. */
export interface Cell {
  readonly rank: number;
  readonly row: number | undefined;
  readonly x: number;
  readonly y: number;
}

export interface Section {
  readonly title: string; // "" for a grid of one section
  readonly y: number;
}

export interface Grid {
  readonly cells: readonly Cell[];
  readonly sections: readonly Section[];
  readonly size: number; // px of a cell, with the gap to the next one
  readonly columns: number;
  readonly height: number;
}

const MAX_DRAWN = 20_000; // missing ranks of a larger job are only counted
const [MIN_SIZE, MAX_SIZE] = [6, 44]; // px
const IDEAL_HEIGHT = 360; // px
const TITLE_HEIGHT = 22;

/** The grid at this width. With a pipeline, each stage is a section; a line holds whole hosts if they fit. */
export function gridOf(table: RankTable, missing: readonly number[], width: number): Grid {
  const parts = sectionsOf(table, missing);
  const count = parts.reduce((sum, { ranks }) => sum + ranks.length, 0);
  const ideal = Math.floor(Math.sqrt((width * IDEAL_HEIGHT) / Math.max(count, 1)));
  const size = Math.min(Math.max(ideal, MIN_SIZE), MAX_SIZE);
  const fitting = Math.max(Math.floor(width / size), 1);
  const perHost = hostSize(table.host);
  const columns = fitting > perHost ? fitting - (fitting % perHost) : fitting;
  const rowOf = new Map(table.rank.map((rank, row) => [rank, row]));
  const cells: Cell[] = [];
  const sections: Section[] = [];
  let top = 0;
  for (const { title, ranks } of parts) {
    sections.push({ title, y: top });
    if (title) top += TITLE_HEIGHT;
    ranks.forEach((rank, index) => cells.push({ rank, row: rowOf.get(rank), x: (index % columns) * size, y: top + Math.floor(index / columns) * size }));
    top += Math.ceil(ranks.length / columns) * size + (title ? 6 : 0);
  }
  return { cells, sections, size, columns, height: top };
}

function sectionsOf({ rank, stage }: RankTable, missing: readonly number[]): readonly { readonly title: string; readonly ranks: readonly number[] }[] {
  const drawn = rank.length + missing.length > MAX_DRAWN ? [] : missing;
  if (stage.length === 0) return [{ title: "", ranks: [...rank, ...drawn].sort((a, b) => a - b) }];
  const stages = [...new Set(stage)].sort((a, b) => a - b);
  const sections = stages.map((number) => ({ title: `Stage ${number}`, ranks: rank.filter((_, row) => stage[row] === number) }));
  return drawn.length > 0 ? [...sections, { title: "Not recorded", ranks: drawn }] : sections;
}

/** Ranks of a host, if all hosts have equally many; otherwise 1. */
function hostSize(host: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const number of host) counts.set(number, (counts.get(number) ?? 0) + 1);
  const sizes = new Set(counts.values());
  const [size = 1] = sizes;
  return sizes.size === 1 ? size : 1;
}

/** The cell at a position; undefined between and beyond the cells. */
export function cellAt({ cells, size }: Grid, x: number, y: number): Cell | undefined {
  return cells.find((cell) => x >= cell.x && x < cell.x + size && y >= cell.y && y < cell.y + size);
}

/** The position in `cells` after a key; undefined if the key does not move. */
export function cellAfterKey({ cells, columns }: Grid, key: string, at: number): number | undefined {
  const last = cells.length - 1;
  switch (key) {
    case "ArrowRight":
      return Math.min(at + 1, last);
    case "ArrowLeft":
      return Math.max(at - 1, 0);
    case "ArrowDown":
      return nextLine(cells, at, 1) ?? Math.min(at + columns, last);
    case "ArrowUp":
      return nextLine(cells, at, -1) ?? Math.max(at - columns, 0);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return undefined;
  }
}

/** The cell above or below: sections may end within a line. */
function nextLine(cells: readonly Cell[], at: number, direction: 1 | -1): number | undefined {
  const from = cells[at];
  let found: number | undefined;
  for (let next = at + direction; from && next >= 0 && next < cells.length; next += direction) {
    const cell = cells[next]!;
    if (cell.y === from.y) continue;
    if (found !== undefined && cell.y !== cells[found]!.y) break;
    if (found === undefined || Math.abs(cell.x - from.x) < Math.abs(cells[found]!.x - from.x)) found = next;
  }
  return found;
}

const LEAST_SCALE = 0.02; // smaller differences are noise, and must not look like the largest ones

/** The share that has the full colour. */
export const scaleOf = ({ shares = [] }: Measure): number => shares.reduce((largest, share) => Math.max(largest, share), LEAST_SCALE);

/** The colour of a rank, and how much of it is mixed into the empty cell: 0 to 1. */
export function colourOfRank(measure: Measure, table: RankTable, row: number, scale: number): readonly [string, number] {
  if (!measure.shares) return [colourOf(table.regime[row] ?? ""), 1];
  return [colourOf(measure.colour ?? ""), Math.min((measure.shares[row] ?? 0) / scale, 1)];
}

/** "Rank 5, host 2, stage 1: 12 %, slowed by Waiting for data": what the grid says about one rank. */
export function cellText({ rank, row }: Cell, measure: Measure, table: RankTable, job: Job, titleOf: (regime: string) => string): string {
  if (row === undefined) return `Rank ${rank}: no usable recording`;
  const place = [
    `Rank ${rank}`,
    ...(table.host.length ? [`host ${table.host[row]}`] : []),
    ...(table.stage.length ? [`stage ${table.stage[row]}`] : []),
  ].join(", ");
  const value = measure.shares ? `${measure.title}, ${shortShare(measure.shares[row])} of the step` : `Own verdict: ${titleOf(table.regime[row] ?? "")}`;
  const causes = job.culprits.filter(({ ranks }) => ranks.includes(rank)).map(({ title }) => title);
  return [`${place}. ${value}`, ...causes].join(". ");
}
