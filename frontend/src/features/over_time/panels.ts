// Telemetry as panels: signals that share a chart, their samples on one time axis, and the ranges to shade. Pure.
import type { Band, Series, StepRows, TelemetryAnswer } from "../../shared/report";
import { unixSeconds } from "../../shared/text/format";

/** The samples of a signal. Times are seconds since 1970; null is an unknown value. */
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
  readonly lost: boolean; // time in which the device does no useful work
}

export interface Panel {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  /** Not drawn, because their values are far from those of the lines. */
  readonly beside: readonly Line[];
  readonly shades: readonly Shade[];
}

interface Plan {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly signals: readonly (readonly [string, string])[]; // names in tb_bottleneck/schema/, and their titles
  readonly columns?: readonly (readonly [string, string])[]; // of the steps, with titles
  readonly beside?: readonly (readonly [string, string])[]; // signals that are not drawn
}

const PLANS: readonly Plan[] = [
  { id: "step", title: "Step time", unit: "ns", signals: [], columns: [["wall", "step"], ["loader_wait", "waiting for the loader"], ["device_busy", "device busy"]] },
  {
    id: "use",
    title: "GPU utilisation",
    unit: "share",
    signals: [["gpu_utilisation", "any kernel"], ["sm_activity", "multiprocessors"], ["tensor_activity", "tensor cores"], ["dram_activity", "memory bandwidth"]],
  },
  { id: "power", title: "Power", unit: "W", signals: [["power", "drawn"], ["power_limit", "limit"]] },
  { id: "clocks", title: "Clocks", unit: "Hz", signals: [["sm_clock", "multiprocessors"], ["memory_clock", "memory"]] },
  { id: "heat", title: "Temperature", unit: "celsius", signals: [["temperature", "GPU"], ["memory_temperature", "memory"]] },
  {
    id: "memory",
    title: "Device memory",
    unit: "bytes",
    signals: [["memory_used", "used"], ["memory_total", "total"]],
    columns: [["memory_allocated", "in tensors"], ["memory_reserved", "reserved by torch"]],
  },
  {
    id: "host_memory",
    title: "Host memory",
    unit: "bytes",
    signals: [["process_memory", "training"], ["worker_pss", "loader workers"], ["shared_memory_used", "shared"], ["pinned_memory", "pinned"]],
    beside: [["host_memory_available", "available"]],
  },
  { id: "pcie", title: "PCIe", unit: "bytes_per_s", signals: [["pcie_received", "to the GPU"], ["pcie_sent", "from the GPU"]] },
  {
    id: "cpu",
    title: "Busy CPU cores",
    unit: "count",
    signals: [["cpu_busy_cores", "all processes"], ["process_cores", "training"], ["worker_cores", "loader workers"], ["cpu_usable_cores", "usable"]],
  },
  { id: "disk", title: "Storage", unit: "bytes_per_s", signals: [["disk_read", "read"], ["disk_written", "written"]] },
];

/** The panels that have samples. `device` is one of `devicesOf`; host signals are shown for each device. */
export function panelsOf(data: TelemetryAnswer, device: string): readonly Panel[] {
  const regimes = data.bands.map(shadeOf);
  const throttled = throttling(data.series, device);
  return PLANS.map((plan) => ({
    id: plan.id,
    title: plan.title,
    unit: plan.unit,
    lines: [...columnLines(plan, data.steps), ...seriesLines(plan, plan.signals, data.series, device)],
    beside: seriesLines(plan, plan.beside ?? [], data.series, device),
    shades: plan.id === "step" ? regimes : plan.id === "clocks" || plan.id === "power" ? throttled : [],
  })).filter(({ lines }) => lines.length > 0);
}

/** The GPUs, the judged one first. */
export function devicesOf(data: TelemetryAnswer): readonly string[] {
  if (data.devices.length > 0) return data.devices;
  return [...new Set(data.series.map(({ device }) => device))].filter((device) => device !== HOST).sort();
}

const HOST = "host";

function seriesLines({ unit }: Plan, signals: Plan["signals"], series: readonly Series[], device: string): readonly Line[] {
  return signals.flatMap(([name, title]) => {
    const signal = series.find((each) => each.name === name && (each.device === device || each.device === HOST));
    if (!signal || signal.values.length === 0) return [];
    return [{ name, title, unit, times: signal.unix_ns.map(unixSeconds), values: signal.values.map(finite) }];
  });
}

function columnLines({ columns = [], unit }: Plan, steps: StepRows | undefined): readonly Line[] {
  if (!steps || steps.end_unix_ns.length === 0) return [];
  const times = steps.end_unix_ns.map(unixSeconds);
  return columns.flatMap(([name, title]) => {
    const values = name === "wall" ? steps.wall_ns : steps.columns.find((column) => column.name === name)?.values;
    if (!values?.some((value) => finite(value) !== null)) return [];
    return [{ name, title, unit, times, values: values.map(finite) }];
  });
}

/** JSON has no NaN: an unknown value arrives as text or null. */
const finite = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

function shadeOf({ begin_unix_ns, end_unix_ns, regime, title, severity }: Band): Shade {
  const lost = severity !== "none";
  return { from: unixSeconds(begin_unix_ns), to: unixSeconds(end_unix_ns), key: regime, title: title || regime, lost };
}

const LIMITS: readonly (readonly [string, string, string])[] = [
  ["power_capped_total", "power", "throttled by the power limit"],
  ["thermal_capped_total", "heat", "throttled by temperature"],
];

/** NVML's reasons for reduced clocks (nvml.h, nvmlClocksEventReason*): power and temperature. */
const REASONS: ReadonlyMap<string, number> = new Map([
  ["power", 0x04 | 0x80], // software power cap, hardware power brake
  ["heat", 0x20 | 0x40], // software and hardware thermal slowdown
]);

/** The ranges in which the counters of throttled time grow. Without these counters, those with a clock event reason. */
export function throttling(series: readonly Series[], device: string): readonly Shade[] {
  const find = (signal: string) => series.find((each) => each.name === signal && each.device === device);
  const reasons = find("clock_event_reasons");
  return LIMITS.flatMap(([name, key, title]) => {
    const counter = find(name);
    const mask = REASONS.get(key) ?? 0;
    const ranges = counter ? rangesWhere(counter, (index) => counter.values[index]! > counter.values[index - 1]!) : reasons ? rangesWhere(reasons, (index) => (reasons.values[index]! & mask) !== 0) : [];
    return ranges.map(([from, to]) => ({ from, to, key, title, lost: true }));
  });
}

/** The ranges from a sample's predecessor to the sample for which the predicate is true. Adjacent ranges are merged. */
function rangesWhere({ unix_ns, values }: Series, predicate: (index: number) => boolean): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = [];
  for (let index = 1; index < values.length; index++) {
    if (!predicate(index)) continue;
    const [from, to] = [unixSeconds(unix_ns[index - 1]!), unixSeconds(unix_ns[index]!)];
    const last = ranges[ranges.length - 1];
    if (last && last[1] === from) last[1] = to;
    else ranges.push([from, to]);
  }
  return ranges;
}

/** The times of the first and the last sample of any panel, seconds. */
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
  readonly max: number;
}

/** The last, the mean and the largest value in a range, if there is one. */
export function summary({ times, values }: Line, from: number, to: number): Summary | undefined {
  let [sum, count, max, now] = [0, 0, -Infinity, 0];
  values.forEach((value, index) => {
    const time = times[index]!;
    if (value === null || time < from || time > to) return;
    sum += value;
    count += 1;
    max = Math.max(max, value);
    now = value;
  });
  return count > 0 ? { now, mean: sum / count, max } : undefined;
}

const TYPICAL_QUANTILE = 0.98;
const OUTLIER_FACTOR = 2.5; // a larger value, relative to the quantile, is an outlier
const CUT_FACTOR = 1.25; // with outliers, the chart ends at this multiple of the quantile
const HEADROOM = 1.08;

/**
 * The upper end of a chart: the largest value, unless a few outliers would hide all others (a first step that compiles,
 * a checkpoint). Then `cut` is true.
 */
export function ceiling(lines: readonly Line[], from: number, to: number): { readonly top: number; readonly cut: boolean } {
  let [top, max] = [0, 0];
  for (const { times, values } of lines) {
    const inRange = values.filter((value, index): value is number => value !== null && times[index]! >= from && times[index]! <= to).sort((a, b) => a - b);
    if (inRange.length === 0) continue;
    const largest = inRange[inRange.length - 1]!;
    const typical = inRange[Math.floor((inRange.length - 1) * TYPICAL_QUANTILE)]!;
    top = Math.max(top, typical > 0 && largest > typical * OUTLIER_FACTOR ? typical * CUT_FACTOR : largest);
    max = Math.max(max, largest);
  }
  return { top: (top || 1) * HEADROOM, cut: max > top * HEADROOM };
}
