// The columns of the tables of what ran.
import type { CommunicationRow, CopyRow, CriticalRow, KernelRow, OperatorRow, SyncRow } from "../../shared/report";
import { REGIMES } from "../../shared/regimes";
import type { Focus } from "../../shared/run/focus";
import { bytes, count, duration, rate, share, shortShare } from "../../shared/text/format";
import { roof, wait } from "../../shared/text/vocabulary";
import type { Column } from "../../shared/widgets/sortable_table";
import { Swatch } from "../../shared/widgets/swatch";

/** How totals of the window are shown: as means per step if the steps are known, as in the diagnosis. */
export interface PerStep {
  readonly step: boolean;
  readonly of: (total: number) => number;
  readonly calls: (calls: number) => string;
}

export function perStep(steps: number | undefined): PerStep {
  if (steps === undefined || steps < 2) return { step: false, of: (total) => total, calls: count };
  return { step: true, of: (total) => total / steps, calls: (calls) => (calls % steps === 0 ? count(calls / steps) : count(Number((calls / steps).toPrecision(3)))) };
}

export type Occurrence = { readonly begin_ns: number; readonly end_ns: number };
export type LinkTo = (name: string, row: Occurrence) => preact.JSX.Element;

/** A name that links to its longest occurrence on the timeline. */
export function OccurrenceLink({ name, shown, row, showFocus }: { name: string; shown: string; row: Occurrence; showFocus: (focus: Focus) => void }) {
  return (
    <button
      type="button"
      class="link long-name"
      title={`${name}\n(shows the longest occurrence on the timeline)`}
      onClick={() => showFocus({ begin: row.begin_ns, end: row.end_ns, label: "Longest occurrence" })}
    >
      {shown}
    </button>
  );
}

const NEAR_ROOF = "Share of its roof that it reaches; needs record_shapes=True";

type Choose = (name: string) => void;

/** A button that shows the groups of a name below the table. */
function Details({ name, choose }: { readonly name: string; readonly choose: Choose }) {
  return (
    <button type="button" class="link" aria-label={`Groups of calls of ${name}`} title="By shapes, callers, kernels, modules and lines" onClick={() => choose(name)}>
      Groups
    </button>
  );
}

export const kernelColumns = (linkTo: LinkTo, per: PerStep, choose: Choose): readonly Column<KernelRow>[] => [
  { key: "name", title: "Kernel", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; overlapping kernels count once"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("min", "Min", ({ min_ns }) => min_ns, duration),
  figure("mean", "Mean", ({ mean_ns }) => mean_ns, duration),
  figure("max", "Max", ({ max_ns }) => max_ns, duration),
  {
    key: "bound",
    title: "Bound by",
    figure: false,
    value: ({ regime }) => regime,
    cell: ({ regime }) => (
      <>
        <Swatch regime={regime} />
        {roof(regime)}
      </>
    ),
  },
  figure("reached", "Of its roof", ({ reached }) => reached, share, NEAR_ROOF, true),
  {
    key: "type",
    title: "Precision",
    hint: "The data type, and whether on tensor cores, according to the kernel’s name",
    figure: false,
    optional: true,
    value: ({ unit, precision }) => `${unit} ${precision}`.trim() || undefined,
    cell: ({ unit, precision }) => (unit || precision ? `${precision} ${unit === "tensor" ? "on tensor cores" : unit === "vector" ? "without tensor cores" : ""}` : "–"),
  },
  figure("blocks", "Blocks per SM", ({ blocks_per_sm }) => blocks_per_sm, count, "Thread blocks of the grid / multiprocessors; below 1, a part of the device has nothing to do", true),
  figure("occupancy", "Occupancy", ({ occupancy }) => occupancy, shortShare, "As the profiler estimates it from registers and shared memory", true),
  { key: "details", title: "Calls by", figure: false, value: () => undefined, cell: ({ name }) => <Details name={name} choose={choose} /> },
];

export const operatorColumns = (linkTo: LinkTo, onDevice: boolean, per: PerStep, choose: Choose): readonly Column<OperatorRow>[] => [
  { key: "name", title: "Operator", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  ...(onDevice
    ? [
        figure<OperatorRow>("device", "Device time", ({ device_ns }) => per.of(device_ns), duration, "Time of the kernels that it launches itself"),
        figure<OperatorRow>("device_total", "with called", ({ device_total_ns }) => per.of(device_total_ns), duration, "Device time with that of the operators that it calls"),
      ]
    : []),
  figure("host", "Host time", ({ host_ns }) => per.of(host_ns), duration, "Without the operators that it calls"),
  figure("host_total", "with called", ({ host_total_ns }) => per.of(host_total_ns), duration, "Host time with that of the operators that it calls"),
  figure("share", "Share", (row) => row.share, share, onDevice ? "Device time, of the analysed window" : "Of the judged window"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  ...(onDevice
    ? [
        figure<OperatorRow>("reached", "Of its roof", ({ reached }) => reached, share, NEAR_ROOF, true),
        figure<OperatorRow>("kernels", "Kernels", ({ kernels }) => kernels, count, "Launched per call, by it and the operators that it calls"),
        {
          key: "tensor",
          title: "Tensor cores",
          hint: "Share of its device time in kernels on tensor cores, of contractions",
          figure: true,
          optional: true,
          value: (row: OperatorRow) => (row.tensor_eligible ? row.tensor_share : undefined),
          cell: (row: OperatorRow) => (!row.tensor_eligible ? "–" : row.tensor_share === undefined ? "eligible" : shortShare(row.tensor_share)),
        },
        { key: "roof", title: "Roof", hint: "What would limit it, by its arithmetic intensity", figure: false, optional: true, value: (row: OperatorRow) => row.roof || undefined, cell: (row: OperatorRow) => (row.roof ? roof(row.roof) : "–") },
      ]
    : []),
  { key: "details", title: "Calls by", figure: false, value: () => undefined, cell: ({ name }) => <Details name={name} choose={choose} /> },
];

export const communicationColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CommunicationRow>[] => [
  {
    key: "name",
    title: "Operation",
    figure: false,
    value: ({ operation }) => operation,
    cell: (row) => (
      <>
        {linkTo(row.operation.replaceAll("_", "-"), row)}
        {(row.group || row.ranks > 0) && <small>{[row.group, row.ranks > 0 && `${row.ranks} ranks`].filter(Boolean).join(", ")}</small>}
      </>
    ),
  },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; overlapping calls count once"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("bytes", "Size", (row) => row.bytes || undefined, bytes, "Of one call: the larger side"),
  figure("min", "Min", ({ min_ns }) => min_ns, duration),
  figure("mean", "Mean", ({ mean_ns }) => mean_ns, duration),
  figure("max", "Max", ({ max_ns }) => max_ns, duration),
  figure("algorithm", "Algorithm bandwidth", (row) => row.algorithm_bytes_per_s, rate, "Size / time, as nccl-tests defines it"),
  figure("bus", "Bus bandwidth", (row) => row.bus_bytes_per_s, rate, "With the factor of nccl-tests for the operation and the number of ranks: comparable with the speed of the link"),
];

export const criticalColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CriticalRow>[] => [
  {
    key: "name",
    title: "What",
    figure: false,
    value: ({ name, regime }) => name || regime,
    cell: (row) => (
      <span class="with-swatch">
        <Swatch regime={row.regime} />
        {linkTo(row.name || `Host (${REGIMES.find(({ id }) => id === row.regime)?.label ?? row.regime})`, row)}
      </span>
    ),
  },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; the rows sum to it"),
  figure("count", "Parts", (row) => row.count, per.calls),
];

export const syncColumns = (linkTo: LinkTo, per: PerStep): readonly Column<SyncRow>[] => [
  {
    key: "line",
    title: "Function and line",
    figure: false,
    value: ({ line, operator }) => line || operator,
    cell: (row) => (
      <>
        {linkTo(row.line || row.operator, row)}
        {row.line && <small>{row.operator}</small>}
      </>
    ),
  },
  { key: "kind", title: "Waits for", figure: false, value: ({ kind }) => kind, cell: ({ kind }) => wait(kind) },
  figure("cost", "Device idle", ({ cost_ns }) => per.of(cost_ns), duration, "Device time without work, not the time in the calls"),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window"),
  figure("waited", "Host waited", ({ waited_ns }) => per.of(waited_ns), duration),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
];

export const copyColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CopyRow>[] => [
  { key: "name", title: "Kind", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("bytes", "Moved", (row) => per.of(row.bytes), bytes),
  figure("rate", "Rate", ({ bytes_per_s }) => bytes_per_s, rate, "Mean over all copies"),
];

function figure<T>(key: string, title: string, value: (row: T) => number | undefined, format: (value: number) => string, hint = "", optional = false): Column<T> {
  return {
    key,
    title,
    figure: true,
    optional,
    value,
    cell: (row) => {
      const number = value(row);
      return number === undefined ? "–" : format(number);
    },
    ...(hint ? { hint } : {}),
  };
}
