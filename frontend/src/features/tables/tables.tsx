// What ran in the analysed window: the account of each step, kernels, operators, waits, copies.
import { useMemo, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { CommunicationRow, CopyRow, CriticalRow, KernelRow, LeftOut, OperatorRow, Tables as Message, SyncRow } from "../../shared/report";
import { REGIMES } from "../../shared/regimes";
import type { Focus } from "../../shared/run/focus";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { bytes, count, duration, rate, share, shortShare } from "../../shared/text/format";
import { distinctNames } from "../../shared/text/names";
import { roof, wait } from "../../shared/text/vocabulary";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { Swatch } from "../../shared/widgets/swatch";
import { NameDetails, type Chosen } from "./details";
import { StepAccount } from "./step_account";
import sheet from "./tables.css";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

export function TablesView({ client, entry, report, showFocus }: ViewProps) {
  return (
    <Request
      subject={`${entry.id} tables`}
      version={report}
      waiting="Reading the recording…"
      send={(signal, onProgress) => poll(() => client.tables(entry.id, signal), signal, onProgress)}
    >
      {({ tables }) =>
        tables && tables.window_ns > 0 ? (
          <Content client={client} entry={entry} tables={tables} showFocus={showFocus} onDevice={report.device?.kind !== "cpu" && ranOnDevice(tables)} steps={report.window && report.window.basis !== "whole" ? report.window.steps : undefined} />
        ) : (
          <p class="muted">Nothing ran in this recording.</p>
        )
      }
    </Request>
  );
}

/** Returns true if anything ran on the device: a device may be present and unused. */
const ranOnDevice = ({ kernels, operators, copies }: Message): boolean =>
  kernels.length > 0 || copies.length > 0 || operators.some(({ device_ns }) => device_ns > 0);

interface ContentProps extends Pick<ViewProps, "client" | "entry"> {
  readonly tables: Message;
  readonly showFocus: (focus: Focus) => void;
  readonly onDevice: boolean;
  readonly steps: number | undefined; // of the analysed window; undefined if they are not known
}

function Content({ client, entry, tables, showFocus, onDevice, steps }: ContentProps) {
  const names = useMemo(() => distinctNames(tables.kernels.map(({ name }) => name)), [tables]);
  const [chosen, choose] = useState<Chosen>();
  const detailsOf = (kind: Chosen["kind"]) =>
    chosen?.kind === kind && <NameDetails client={client} entry={entry} chosen={chosen} close={() => choose(undefined)} showFocus={showFocus} />;
  const linkTo = (name: string, row: Occurrence) => <OccurrenceLink name={name} shown={names.get(name) ?? name} row={row} showFocus={showFocus} />;
  const per = perStep(steps);
  return (
    <>
      {per.step && <p class="muted">Times, calls and bytes are per step, as means over {count(steps ?? 0)} steps.</p>}
      {steps !== undefined && tables.step_account && tables.step_account.steps.length > 1 && (
        <StepAccount columns={tables.step_account} showFocus={showFocus} />
      )}
      {tables.kernels.length > 0 && (
        <SortableTable
          caption="Kernels"
          rows={tables.kernels}
          columns={kernelColumns(linkTo, per, (name) => choose({ kind: "kernel", name }))}
          initial={{ by: "total", descending: true }}
          searchText={({ name, precision, unit, regime }) => `${name} ${precision} ${unit} ${regime}`}
          note={<LeftOutNote left={tables.kernels_left_out} window={tables.window_ns} />}
        />
      )}
      {detailsOf("kernel")}
      <SortableTable
        caption="Operators"
        rows={tables.operators}
        columns={operatorColumns(linkTo, onDevice, per, (name) => choose({ kind: "operator", name }))}
        initial={{ by: onDevice ? "device" : "host", descending: true }}
        searchText={({ name }) => name}
        note={<LeftOutNote left={tables.operators_left_out} window={tables.window_ns} />}
      />
      {detailsOf("operator")}
      {onDevice &&
        (tables.syncs.length > 0 ? (
          <SortableTable
            caption="Waits for the device that cost time, by location"
            rows={tables.syncs}
            columns={syncColumns(linkTo, per)}
            initial={{ by: "cost", descending: true }}
            searchText={({ operator, line, kind }) => `${operator} ${line} ${kind}`}
            note={
              tables.syncs.every(({ line }) => !line) && (
                <span class="muted">Record with with_stack=True to see the functions of your program.</span>
              )
            }
          />
        ) : (
          <p class="muted">No wait of the host for the device cost time.</p>
        ))}
      {tables.communications.length > 0 && (
        <SortableTable
          caption="Communication, by operation, group and size"
          rows={tables.communications}
          columns={communicationColumns(linkTo, per)}
          initial={{ by: "total", descending: true }}
          searchText={({ operation, group }) => `${operation} ${group}`}
          note={<span class="muted">A recording of one rank cannot tell the transfer from the wait for other ranks, so the bandwidths are lower bounds.</span>}
        />
      )}
      {tables.critical_path.length > 0 && (
        <SortableTable
          caption="Critical path"
          rows={tables.critical_path}
          columns={criticalColumns(linkTo, per)}
          initial={{ by: "total", descending: true }}
          searchText={({ name, regime }) => `${name} ${regime}`}
          note={<span class="muted">What the window had to wait for, moment by moment. Other work ran at the same time and delayed nothing.</span>}
        />
      )}
      {tables.copies.length > 0 && (
        <SortableTable caption="Copies and fills" rows={tables.copies} columns={copyColumns(linkTo, per)} initial={{ by: "total", descending: true }} />
      )}
    </>
  );
}

/** How totals of the window are shown: as means per step if the steps are known, as in the diagnosis. */
interface PerStep {
  readonly step: boolean;
  readonly of: (total: number) => number;
  readonly calls: (calls: number) => string;
}

function perStep(steps: number | undefined): PerStep {
  if (steps === undefined || steps < 2) return { step: false, of: (total) => total, calls: count };
  return { step: true, of: (total) => total / steps, calls: (calls) => (calls % steps === 0 ? count(calls / steps) : count(Number((calls / steps).toPrecision(3)))) };
}

type Occurrence = { readonly begin_ns: number; readonly end_ns: number };
type LinkTo = (name: string, row: Occurrence) => preact.JSX.Element;

/** A name that links to its longest occurrence on the timeline. */
function OccurrenceLink({ name, shown, row, showFocus }: { name: string; shown: string; row: Occurrence; showFocus: (focus: Focus) => void }) {
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

const kernelColumns = (linkTo: LinkTo, per: PerStep, choose: Choose): readonly Column<KernelRow>[] => [
  { key: "name", title: "Kernel", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; overlapping kernels count twice"),
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
  figure("reached", "Of its roof", ({ reached }) => reached, share, NEAR_ROOF),
  {
    key: "type",
    title: "Precision",
    hint: "The data type, and whether on tensor cores, according to the kernel’s name",
    figure: false,
    value: ({ unit, precision }) => `${unit} ${precision}`.trim() || undefined,
    cell: ({ unit, precision }) => (unit || precision ? `${precision} ${unit === "tensor" ? "on tensor cores" : unit === "vector" ? "without tensor cores" : ""}` : "–"),
  },
  figure("blocks", "Blocks per SM", ({ blocks_per_sm }) => blocks_per_sm, count, "Thread blocks of the grid / multiprocessors; below 1, a part of the device has nothing to do"),
  figure("occupancy", "Occupancy", ({ occupancy }) => occupancy, shortShare, "As the profiler estimates it from registers and shared memory"),
  { key: "details", title: "Calls by", figure: false, value: () => undefined, cell: ({ name }) => <Details name={name} choose={choose} /> },
];

const operatorColumns = (linkTo: LinkTo, onDevice: boolean, per: PerStep, choose: Choose): readonly Column<OperatorRow>[] => [
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
        figure<OperatorRow>("reached", "Of its roof", ({ reached }) => reached, share, NEAR_ROOF),
        figure<OperatorRow>("kernels", "Kernels", ({ kernels }) => kernels, count, "Launched per call, by it and the operators that it calls"),
        {
          key: "tensor",
          title: "Tensor cores",
          hint: "Share of its device time in kernels on tensor cores, of contractions",
          figure: true,
          value: (row: OperatorRow) => (row.tensor_eligible ? row.tensor_share : undefined),
          cell: (row: OperatorRow) => (!row.tensor_eligible ? "–" : row.tensor_share === undefined ? "eligible" : shortShare(row.tensor_share)),
        },
        { key: "roof", title: "Roof", hint: "What would limit it, by its arithmetic intensity", figure: false, value: (row: OperatorRow) => row.roof || undefined, cell: (row: OperatorRow) => (row.roof ? roof(row.roof) : "–") },
      ]
    : []),
  { key: "details", title: "Calls by", figure: false, value: () => undefined, cell: ({ name }) => <Details name={name} choose={choose} /> },
];

const communicationColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CommunicationRow>[] => [
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
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; overlapping calls count twice"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("bytes", "Size", (row) => row.bytes || undefined, bytes, "Of one call: the larger side"),
  figure("min", "Min", ({ min_ns }) => min_ns, duration),
  figure("mean", "Mean", ({ mean_ns }) => mean_ns, duration),
  figure("max", "Max", ({ max_ns }) => max_ns, duration),
  figure("algorithm", "Algorithm bandwidth", (row) => row.algorithm_bytes_per_s, rate, "Size / time, as nccl-tests defines it"),
  figure("bus", "Bus bandwidth", (row) => row.bus_bytes_per_s, rate, "With the factor of nccl-tests for the operation and the number of ranks: comparable with the speed of the link"),
];

const criticalColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CriticalRow>[] => [
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

const syncColumns = (linkTo: LinkTo, per: PerStep): readonly Column<SyncRow>[] => [
  {
    key: "line",
    title: "Function (line of its def)",
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

const copyColumns = (linkTo: LinkTo, per: PerStep): readonly Column<CopyRow>[] => [
  { key: "name", title: "Kind", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("bytes", "Moved", (row) => per.of(row.bytes), bytes),
  figure("rate", "Rate", ({ bytes_per_s }) => bytes_per_s, rate, "Mean over all copies"),
];

function figure<T>(key: string, title: string, value: (row: T) => number | undefined, format: (value: number) => string, hint = ""): Column<T> {
  return {
    key,
    title,
    figure: true,
    value,
    cell: (row) => {
      const number = value(row);
      return number === undefined ? "–" : format(number);
    },
    ...(hint ? { hint } : {}),
  };
}

function LeftOutNote({ left, window }: { left: LeftOut | undefined; window: number }) {
  if (!left || left.rows === 0) return null;
  return (
    <span class="muted">
      {count(left.rows)} more are not listed: {duration(left.total_ns)} in total ({share(left.total_ns / window)}).
    </span>
  );
}
