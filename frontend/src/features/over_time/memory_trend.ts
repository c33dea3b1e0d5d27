// What a panel of memory says about growth and headroom in the visible range. Pure.
import { bytes, duration, fromSeconds } from "../../shared/text/format";
import type { Line, Panel } from "./panels";

/** The first of these lines that a panel has may grow; the limit is a size, or what is left beside it. */
const GROWING: Readonly<Record<string, readonly string[]>> = { memory: ["memory_allocated", "memory_used"], host_memory: ["process_memory"] };
/**
 * The rule of tb_bottleneck/memory/telemetry_memory.py, so that the chart and the diagnosis agree. The diagnosis takes the
 * host's memory at equal distances in steps, the chart at equal distances in time.
 */
const PARTS = 8;
const MIN_READINGS = 3 * PARTS;
const MIN_GROWTH = 0.05; // of the first part
const STEADY = 0.5; // growth in the second half, of that in the first

/** Growth and headroom as a sentence each, or nothing if the panel is not about memory. */
export function memoryTrend({ id, lines, beside }: Panel, from: number, to: number): readonly string[] {
  const names = GROWING[id];
  if (!names) return [];
  const left = headroom([...lines, ...beside], from, to);
  const growing = names.map((name) => lines.find((line) => line.name === name)).find((line) => line !== undefined);
  const rate = growing && growth(growing, from, to);
  const sentences = left === undefined ? [] : [`Headroom: ${bytes(left)}.`];
  if (growing && rate !== undefined) {
    const full = left === undefined ? "" : `; at this rate it is full in ${duration(fromSeconds(left / rate))}`;
    sentences.push(`Growing (${growing.title}): ${bytes(rate * 60)} per minute${full}.`);
  }
  return sentences;
}

/** Bytes that were left at the fullest moment of the range. */
function headroom(lines: readonly Line[], from: number, to: number): number | undefined {
  const of = (name: string) => inRange(lines.find((line) => line.name === name), from, to);
  const [used, total, available] = [of("memory_used"), of("memory_total"), of("host_memory_available")];
  if (available.length > 0) return Math.min(...available);
  return used.length > 0 && total.length > 0 ? Math.max(Math.max(...total) - Math.max(...used), 0) : undefined;
}

/** Bytes per second if the lowest value of each part of the range is higher than that of the part before. */
function growth(line: Line, from: number, to: number): number | undefined {
  const all = inRange(line, from, to);
  const start = Math.floor(all.length / 10); // the first tenth is left out
  const values = all.slice(start);
  if (values.length < MIN_READINGS) return undefined;
  const times = line.times.filter((time, index) => line.values[index] !== null && time >= from && time <= to).slice(start);
  const size = values.length / PARTS;
  const lows = Array.from({ length: PARTS }, (_, part) => Math.min(...values.slice(Math.floor(part * size), Math.floor((part + 1) * size))));
  const grown = lows[PARTS - 1]! - lows[0]!;
  if (lows.some((low, part) => part > 0 && low <= lows[part - 1]!) || grown < MIN_GROWTH * lows[0]!) return undefined;
  if (lows[PARTS - 1]! - lows[PARTS / 2]! < STEADY * (lows[PARTS / 2 - 1]! - lows[0]!)) return undefined;
  const seconds = (times[times.length - 1]! - times[0]!) * ((PARTS - 1) / PARTS);
  return seconds > 0 ? grown / seconds : undefined;
}

function inRange(line: Line | undefined, from: number, to: number): readonly number[] {
  return line ? line.values.filter((value, index): value is number => value !== null && line.times[index]! >= from && line.times[index]! <= to) : [];
}
