// Telemetry as panels: which signals stand together, their readings on one axis of time, and stretches to shade. Pure.
import { unixSeconds } from "../../shared/text/format";
import type { Band, Series, StepRows, TelemetryAnswer } from "../../shared/report";

/** Times in seconds since 1970, as the charts want them; null where nothing was read at that time. */
export interface Line {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
}

export interface Shade {
  readonly from: number; // seconds
  readonly to: number;
  readonly key: string; // a regime, or power | heat
  readonly title: string;
  readonly lost: boolean; // something there keeps the device from its work
}

export interface Panel {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  readonly shades: readonly Shade[];
}

interface Plan {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly signals: readonly (readonly [string, string])[]; // names of series.py, and what they are called here
  readonly columns?: readonly (readonly [string, string])[]; // of the steps
}

const PLANS: readonly Plan[] = [
  { id: "step", title: "Step time", unit: "ns", signals: [], columns: [["wall", "step"], ["loader_wait", "waiting for the loader"], ["device_busy", "device busy"]] },
  {
    id: "use",
    title: "How busy the GPU is",
    unit: "share",
    signals: [["gpu_utilisation", "any kernel"], ["sm_activity", "multiprocessors"], ["tensor_activity", "tensor cores"], ["dram_activity", "memory bandwidth"]],
  },
  { id: "power", title: "Power", unit: "W", signals: [["power", "drawn"], ["power_limit", "limit"]] },
  { id: "clocks", title: "Clocks", unit: "Hz", signals: [["sm_clock", "multiprocessors"], ["memory_clock", "memory"]] },
  { id: "heat", title: "Temperature", unit: "celsius", signals: [["temperature", "GPU"], ["memory_temperature", "memory"]] },
  { id: "memory", title: "Device memory", unit: "bytes", signals: [["memory_used", "used"], ["memory_total", "there is"]] },
  { id: "pcie", title: "PCIe", unit: "bytes_per_s", signals: [["pcie_received", "to the GPU"], ["pcie_sent", "from the GPU"]] },
  {
    id: "cpu",
    title: "Cores at work",
    unit: "count",
    signals: [["cpu_busy_cores", "all processes"], ["process_cores", "training"], ["worker_cores", "loader’s workers"], ["cpu_usable_cores", "usable"]],
  },
  { id: "disk", title: "Storage", unit: "bytes_per_s", signals: [["disk_read", "read"], ["disk_written", "written"]] },
];

/** The panels that there are readings for. `device` is one of `devicesOf`; signals of the host belong to each. */
export function panelsOf(answer: TelemetryAnswer, device: string): readonly Panel[] {
  const regimes = answer.bands.map(shadeOf);
  const throttled = throttling(answer.series, device);
  return PLANS.map((plan) => ({
    id: plan.id,
    title: plan.title,
    unit: plan.unit,
    lines: [...columnLines(plan, answer.steps), ...seriesLines(plan, answer.series, device)],
    shades: plan.id === "step" ? regimes : plan.id === "clocks" || plan.id === "power" ? throttled : [],
  })).filter(({ lines }) => lines.length > 0);
}

/** The GPUs, the one that is judged first. */
export function devicesOf(answer: TelemetryAnswer): readonly string[] {
  if (answer.devices.length > 0) return answer.devices;
  return [...new Set(answer.series.map(({ device }) => device))].filter((device) => device !== HOST).sort();
}

const HOST = "host";

function seriesLines({ signals, unit }: Plan, series: readonly Series[], device: string): readonly Line[] {
  return signals.flatMap(([name, title]) => {
    const found = series.find((one) => one.name === name && (one.device === device || one.device === HOST));
    if (!found || found.values.length === 0) return [];
    return [{ name, title, unit, times: found.unix_ns.map(unixSeconds), values: found.values.map(known) }];
  });
}

function columnLines({ columns = [], unit }: Plan, steps: StepRows | undefined): readonly Line[] {
  if (!steps || steps.end_unix_ns.length === 0) return [];
  const times = steps.end_unix_ns.map(unixSeconds);
  return columns.flatMap(([name, title]) => {
    const values = name === "wall" ? steps.wall_ns : steps.columns.find((column) => column.name === name)?.values;
    if (!values?.some((value) => known(value) !== null)) return [];
    return [{ name, title, unit, times, values: values.map(known) }];
  });
}

/** JSON has no NaN: a reading that is not known comes as text or null. */
const known = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

function shadeOf({ begin_unix_ns, end_unix_ns, regime, title, severity }: Band): Shade {
  const lost = severity !== "none";
  return { from: unixSeconds(begin_unix_ns), to: unixSeconds(end_unix_ns), key: regime, title: title || regime, lost };
}

const CAPS: readonly (readonly [string, string, string])[] = [
  ["power_capped_total", "power", "held down by the power limit"],
  ["thermal_capped_total", "heat", "held down by heat"],
];

/** Reasons that NVML gives for clocks held down (nvml.h, nvmlClocksEventReason*): by power, and by heat. */
const REASONS: ReadonlyMap<string, number> = new Map([
  ["power", 0x04 | 0x80], // software power cap, hardware power brake
  ["heat", 0x20 | 0x40], // software and hardware thermal slowdown
]);

/** Where the counters of throttled time grow; where the driver has none, where the reasons of the clocks say so. */
export function throttling(series: readonly Series[], device: string): readonly Shade[] {
  const named = (wanted: string) => series.find(({ name, device: of }) => name === wanted && of === device);
  const reasons = named("clock_event_reasons");
  return CAPS.flatMap(([name, key, title]) => {
    const counter = named(name);
    const mask = REASONS.get(key) ?? 0;
    const found = counter ? rising(counter, (at) => counter.values[at]! > counter.values[at - 1]!) : reasons ? rising(reasons, (at) => (reasons.values[at]! & mask) !== 0) : [];
    return found.map(([from, to]) => ({ from, to, key, title, lost: true }));
  });
}

/** The stretches between a reading and the one before for which this holds; neighbours as one. */
function rising({ unix_ns, values }: Series, holds: (at: number) => boolean): readonly (readonly [number, number])[] {
  const found: [number, number][] = [];
  for (let at = 1; at < values.length; at++) {
    if (!holds(at)) continue;
    const [from, to] = [unixSeconds(unix_ns[at - 1]!), unixSeconds(unix_ns[at]!)];
    const last = found[found.length - 1];
    if (last && last[1] === from) last[1] = to;
    else found.push([from, to]);
  }
  return found;
}

/** From the first to the last reading of any panel, seconds. */
export function extent(panels: readonly Panel[]): readonly [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const { lines } of panels) {
    for (const { times } of lines) {
      low = Math.min(low, times[0] ?? low);
      high = Math.max(high, times[times.length - 1] ?? high);
    }
  }
  return low < high ? [low, high] : [Number.isFinite(low) ? low : 0, (Number.isFinite(low) ? low : 0) + 1];
}

export interface Summary {
  readonly now: number;
  readonly mean: number;
  readonly most: number;
}

/** The last, the mean and the greatest reading within a stretch; undefined where there is none. */
export function summary({ times, values }: Line, from: number, to: number): Summary | undefined {
  let [sum, many, most, now] = [0, 0, -Infinity, 0];
  values.forEach((value, at) => {
    const time = times[at]!;
    if (value === null || time < from || time > to) return;
    sum += value;
    many += 1;
    most = Math.max(most, value);
    now = value;
  });
  return many > 0 ? { now, mean: sum / many, most } : undefined;
}

const USUAL = 0.98; // of the readings
const FAR_BEYOND = 2.5;
const ABOVE = 1.25; // then the chart ends there
const HEADROOM = 1.08;

/**
 * How far up a chart reaches: to the greatest reading, unless a few of them are so far beyond the others that nothing else
 * would be seen (a first step that compiles, a checkpoint); then `cut` is told.
 */
export function ceiling(lines: readonly Line[], from: number, to: number): { readonly top: number; readonly cut: boolean } {
  let [top, most] = [0, 0];
  for (const { times, values } of lines) {
    const seen = values.filter((value, at): value is number => value !== null && times[at]! >= from && times[at]! <= to).sort((a, b) => a - b);
    if (seen.length === 0) continue;
    const greatest = seen[seen.length - 1]!;
    const usual = seen[Math.floor((seen.length - 1) * USUAL)]!;
    top = Math.max(top, usual > 0 && greatest > usual * FAR_BEYOND ? usual * ABOVE : greatest);
    most = Math.max(most, greatest);
  }
  return { top: (top || 1) * HEADROOM, cut: most > top * HEADROOM };
}
