// Numbers as text. This is the only file that converts nanoseconds to milliseconds and shares to percent.
import type { Evidence, Speedup, Spread } from "../report";
import { words } from "./identifier";

const NBSP = "\u00a0";
const UNKNOWN = "–";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** Three significant digits, but all digits of the integer part. */
function threeDigits(value: number): string {
  const integerDigits = Math.abs(value) < 1 ? 1 : Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.min(2, Math.max(0, 3 - integerDigits)));
}

/** The value in the largest unit in which it is at least 1 after rounding. */
function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const rounded = Number(value.toPrecision(3));
  const [size, unit] = units.find(([size]) => Math.abs(rounded) >= size) ?? units[units.length - 1]!;
  return `${threeDigits(rounded / size)}${NBSP}${unit}`;
}

const SECOND_NS = 1e9;
const MINUTE_NS = 60 * SECOND_NS;
const TIME_UNITS = [[SECOND_NS, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] as const;

/** "53.0 ms" from nanoseconds; minutes from one minute on. */
export function duration(ns: number | undefined): string {
  if (ns === undefined || !Number.isFinite(ns)) return UNKNOWN;
  if (ns === 0) return `0${NBSP}ms`;
  if (Math.abs(ns) < 0.5) return `<1${NBSP}ns`;
  const seconds = Math.round(ns / SECOND_NS);
  if (ns >= MINUTE_NS) return `${Math.floor(seconds / 60)}${NBSP}min ${seconds % 60}${NBSP}s`;
  return scaled(ns, TIME_UNITS);
}

/** The same without trailing zeros: "50 ms". */
export const roundDuration = (ns: number): string => duration(ns).replace(/\.0+(?=\D)/, "").replace(/(\.\d)0(?=\D)/, "$1");

/** "p10 51.0 ms, median 52.0 ms, p90 55.0 ms" of step times. */
export function spread(step: Spread): string {
  return `p10 ${duration(step.p10)}, median ${duration(step.median)}, p90 ${duration(step.p90)}`;
}

/** "41.0 %", always with one decimal, for columns. A small share is never shown as zero. */
export function share(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN;
  if (value > 0 && value < 0.0005) return `<0.1${NBSP}%`;
  return `${(value * 100).toFixed(1)}${NBSP}%`;
}

/** "41 %", for labels. Shares near 0 and 1 keep their decimal. */
export function shortShare(value: number | undefined): string {
  if (value === undefined || !(value >= 0.0995 && value < 0.995) || !Number.isFinite(value)) {
    return value === 0 || value === 1 ? `${value * 100}${NBSP}%` : share(value);
  }
  return `${Math.round(value * 100)}${NBSP}%`;
}

const BYTE_UNITS = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]] as const;

/** "61.2 kB", decimal multiples. */
export function bytes(count: number): string {
  if (!Number.isFinite(count)) return UNKNOWN;
  return Math.abs(count) < 1000 ? `${Math.round(count)}${NBSP}B` : scaled(count, BYTE_UNITS);
}

/** "2,045", "2.5"; from 100 on without decimals. */
export function count(value: number): string {
  return Number.isFinite(value) ? grouped.format(Math.abs(value) < 100 ? value : Math.round(value)) : UNKNOWN;
}

// Simulated gains are accurate to a few percent. The report's texts round likewise: 6.59× is 6.6×, and 14.7× is 15×.
const ONE_DIGIT_FROM = 1.995;
const WHOLE_FROM = 9.95;

/** A simulated gain: "1.69×", "6.6×", "15×"; with the precision of `reference`. */
export function times(value: number, reference = value): string {
  if (!Number.isFinite(value)) return UNKNOWN;
  return `${value.toFixed(value >= WHOLE_FROM ? 0 : reference >= ONE_DIGIT_FROM ? 1 : 2)}×`;
}

/** A measured or expected ratio, in three digits: "1.69×", "67.3×", "0.0015×". */
export function factor(value: number): string {
  if (!Number.isFinite(value)) return UNKNOWN;
  if (value >= 10) return `${threeDigits(Number(value.toPrecision(3)))}×`;
  return value >= 0.1 || value <= 0 ? `${value.toFixed(2)}×` : `${Number(value.toPrecision(2))}×`;
}

/** How many per second, if this many take so long. */
export const perSecond = (value: number, ns: number): number => value / (ns / SECOND_NS);

/** "+12.0 ms" or "−3.00 ms"; no change is "0 ms". */
export function change(ns: number): string {
  const whole = Math.round(ns); // removes rounding errors of sums
  return `${sign(whole)}${duration(Math.abs(whole))}`;
}

/** "+20.0 %" or "−3.0 %". */
export function signedShare(value: number): string {
  return `${sign(value)}${share(Math.abs(value))}`;
}

const sign = (value: number): string => (value > 0 ? "+" : value < 0 ? "−" : "");

const RATE_UNITS = [[1e15, "PFLOP/s"], [1e12, "TFLOP/s"], [1e9, "GFLOP/s"], [1e6, "MFLOP/s"]] as const;

/** "610 TFLOP/s". */
export function flops(perSecond: number): string {
  return Number.isFinite(perSecond) ? scaled(perSecond, RATE_UNITS) : UNKNOWN;
}

/** "12.4 GFLOP": floating-point operations. */
export function operations(count: number): string {
  return flops(count).replace("/s", "");
}

/** "18.6 GB/s". */
export function rate(bytesPerSecond: number | undefined): string {
  return bytesPerSecond === undefined ? UNKNOWN : `${bytes(bytesPerSecond)}/s`;
}

const CLOCK_UNITS = [[1e9, "GHz"], [1e6, "MHz"], [1e3, "kHz"], [1, "Hz"]] as const;

/** A sample of a telemetry signal, by its unit in tb_bottleneck/schema/. */
export function sample(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  switch (unit) {
    case "share":
      return share(value);
    case "ns":
      return duration(value);
    case "bytes":
      return bytes(value);
    case "bytes_per_s":
      return rate(value);
    case "Hz":
      return value === 0 ? `0${NBSP}Hz` : scaled(value, CLOCK_UNITS);
    case "celsius":
      return `${count(Math.round(value))}${NBSP}°C`;
    case "W":
      return `${count(Math.round(value))}${NBSP}W`;
    default:
      return count(value);
  }
}

/** From this ratio high / low on, an interval has no middle that is worth stating. */
const VAGUE = 3;

/** The gain of a fix as text, and its basis. */
export function speedup(gain: Speedup | undefined): { readonly gain: string; readonly basis: string } {
  if (gain === undefined || gain.basis === "none") {
    return { gain: "not predicted", basis: gain?.because ? "see the reason below" : "this recording does not allow a prediction" };
  }
  switch (gain.basis) {
    case "replay":
      if (gain.high > VAGUE * gain.low) return { gain: between(gain.low, gain.high), basis: "simulated; measure it" };
      return { gain: times(gain.expected), basis: `simulated on this recording${among(gain)}${gain.unless ? `; ${gain.unless}` : ""}` };
    case "bound":
      if (times(gain.high) !== times(gain.expected)) {
        return { gain: `at most ${times(gain.high)}`, basis: `${times(gain.expected)} ${gain.unless || "if nothing but this time disappeared; what remains may become faster, too"}` };
      }
      return { gain: `up to ${times(gain.expected)}`, basis: gain.unless ? `if all of this time disappeared; ${gain.unless}` : "an upper bound, if all of this time disappeared" };
    case "estimate":
      if (gain.high > VAGUE * gain.low) return { gain: `${times(gain.low)} or more`, basis: "from measured changes, which differ widely; measure it" };
      return { gain: `roughly ${times(gain.expected)}`, basis: `from measured changes, ${times(gain.low)} or more` };
    case "trial":
      return { gain: times(gain.expected), basis: `measured${among(gain)} with ${gain.assumes}${gain.predicted === undefined ? "" : `; ${times(gain.predicted)} was predicted`}` };
    case "ranks":
      return { gain: times(gain.expected), basis: `from the accounts of its ranks${among(gain)}` };
    default:
      return { gain: times(gain.expected), basis: words(gain.basis) };
  }
}

/** A simulated gain, and its range if the gain has a middle that is worth stating. */
export function simulated(expected: number, low: number, high: number): { readonly speedup: string; readonly range: string } {
  if (high > VAGUE * low) return { speedup: `${times(low, high)} to ${times(high)}`, range: "measure it" };
  return { speedup: times(expected), range: between(low, high) };
}

function among({ low, high }: Speedup): string {
  const range = between(low, high);
  return range && `, ${range}`;
}

/** "between 1.40× and 1.70×", or "" if both are the same text. */
export function between(low: number, high: number): string {
  const [lower, upper] = [times(low, high), times(high)];
  return lower === upper ? "" : `between ${lower} and ${upper}`;
}

/** The value of a piece of evidence, by its unit. An unknown unit is appended to the number. */
export function evidence({ value, unit, text }: Evidence): string {
  if (unit === "text" || value === undefined) return text || UNKNOWN;
  switch (unit) {
    case "ns":
      return duration(value);
    case "share":
      return share(value);
    case "count":
      return count(value);
    case "bytes":
      return bytes(value);
    case "bytes_per_s":
      return `${bytes(value)}/s`;
    default:
      return `${count(value)}${NBSP}${words(unit)}`;
  }
}

/** "41.2 ms into the window, for 3.1 ms": where the evidence occurred, or "". */
export function occurrence({ begin_ns, end_ns }: Evidence, windowBegin: number | undefined): string {
  if (begin_ns === undefined || end_ns === undefined) return "";
  const after = windowBegin === undefined ? 0 : begin_ns - windowBegin;
  const from = windowBegin === undefined ? `at ${clock(begin_ns)}` : `${duration(Math.abs(after))} ${after < 0 ? "before" : "into"} the window`;
  return `${from}, for ${duration(end_ns - begin_ns)}`;
}

/** A time on the recording's own clock, in the trace file's unit: "5,210,334.12 µs". */
export function clock(ns: number): string {
  return `${grouped.format(ns / 1e3)}${NBSP}µs`;
}

/** Nanoseconds since 1970 as seconds (the unit of the charts), and seconds as nanoseconds. */
export const unixSeconds = (unixNs: number): number => unixNs / SECOND_NS;
export const fromSeconds = (seconds: number): number => seconds * SECOND_NS;

// Creating a formatter takes longer than everything else that draws a row of a list.
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const LAST_MS = 8.64e15; // of JavaScript's dates

const formatted = (format: Intl.DateTimeFormat, epochMs: number): string => (Math.abs(epochMs) <= LAST_MS ? format.format(epochMs) : UNKNOWN);

/** "14:03:12", local time. */
export function timeOfDay(epochMs: number): string {
  return formatted(TIME, epochMs);
}

/** "12 Nov 2026", local time. */
function day(epochMs: number): string {
  return formatted(DAY, epochMs);
}

/** "12 Nov 2026, 14:03:12". The day is included because reports are shared and read later. */
export function moment(epochMs: number): string {
  return `${day(epochMs)}, ${timeOfDay(epochMs)}`;
}

/** A short form: "14:03" today, "12 Nov 14:03" this year, "12 Nov 2025". */
export function shortMoment(epochMs: number, now = Date.now()): string {
  const time = timeOfDay(epochMs).slice(0, 5);
  if (day(epochMs) === day(now)) return time;
  const [date, month, year] = day(epochMs).split(" ");
  return day(now).endsWith(`${year}`) ? `${date} ${month} ${time}` : day(epochMs);
}

/** "12 Nov 2026, 14:03:12 to 14:08:12"; the second day is included if it differs. */
export function momentsBetween(beginMs: number, endMs: number): string {
  return `${moment(beginMs)} to ${day(beginMs) === day(endMs) ? timeOfDay(endMs) : moment(endMs)}`;
}

/** Labels of a time axis. If it covers several days, the first label of each day contains the day. */
export function axisTimes(epochMs: readonly number[]): readonly string[] {
  const days = epochMs.map(day);
  const several = new Set(days).size > 1;
  return epochMs.map((at, index) => (several && days[index] !== days[index - 1] ? `${timeOfDay(at)}\n${days[index]}` : timeOfDay(at)));
}

/** Nanoseconds since 1970 as milliseconds since 1970. */
export const epochMs = (unixNs: number): number => unixNs / 1e6;

/** "2:03" or "1:02:03". */
export function elapsed(ns: number): string {
  const seconds = Math.round(ns / SECOND_NS);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (number: number) => String(number).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
