// What ran in the analysed window: the account of each step, kernels, operators, waits, copies.
import { useMemo } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { CopyRow, KernelRow, LeftOut, OperatorRow, Tables as Message, SyncRow } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { bytes, count, duration, rate, share } from "../../shared/text/format";
import { distinctNames } from "../../shared/text/names";
import { roof, wait } from "../../shared/text/vocabulary";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { Swatch } from "../../shared/widgets/swatch";
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
          <Content tables={tables} showFocus={showFocus} onDevice={report.device?.kind !== "cpu" && ranOnDevice(tables)} steps={report.window && report.window.basis !== "whole" ? report.window.steps : undefined} />
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

interface ContentProps {
  readonly tables: Message;
  readonly showFocus: (focus: Focus) => void;
  readonly onDevice: boolean;
  readonly steps: number | undefined; // of the analysed window; undefined if they are not known
}

function Content({ tables, showFocus, onDevice, steps }: ContentProps) {
  const names = useMemo(() => distinctNames(tables.kernels.map(({ name }) => name)), [tables]);
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
          columns={kernelColumns(linkTo, per)}
          initial={{ by: "total", descending: true }}
          searchText={({ name, precision, unit, regime }) => `${name} ${precision} ${unit} ${regime}`}
          note={<LeftOutNote left={tables.kernels_left_out} window={tables.window_ns} />}
        />
      )}
      <SortableTable
        caption="Operators"
        rows={tables.operators}
        columns={operatorColumns(linkTo, onDevice, per)}
        initial={{ by: onDevice ? "device" : "host", descending: true }}
        searchText={({ name }) => name}
        note={<LeftOutNote left={tables.operators_left_out} window={tables.window_ns} />}
      />
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
                <span class="muted">Record with with_stack=True to see the lines of your program.</span>
              )
            }
          />
        ) : (
          <p class="muted">No wait of the host for the device cost time.</p>
        ))}
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
  return { step: true, of: (total) => total / steps, calls: (calls) => (calls % steps === 0 ? count(calls / steps) : (calls / steps).toPrecision(3)) };
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

const kernelColumns = (linkTo: LinkTo, per: PerStep): readonly Column<KernelRow>[] => [
  { key: "name", title: "Kernel", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  figure("total", "Time", ({ total_ns }) => per.of(total_ns), duration),
  figure("share", "Share", (row) => row.share, share, "Of the analysed window; overlapping kernels count twice"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  figure("mean", "Mean", ({ mean_ns }) => mean_ns, duration),
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
];

const operatorColumns = (linkTo: LinkTo, onDevice: boolean, per: PerStep): readonly Column<OperatorRow>[] => [
  { key: "name", title: "Operator", figure: false, value: ({ name }) => name, cell: (row) => linkTo(row.name, row) },
  ...(onDevice
    ? [figure<OperatorRow>("device", "Device time", ({ device_ns }) => per.of(device_ns), duration, "Time of the kernels that it launches itself")]
    : []),
  figure("host", "Host time", ({ host_ns }) => per.of(host_ns), duration, "Without the operators that it calls"),
  figure("share", "Share", (row) => row.share, share, onDevice ? "Device time, of the analysed window" : "Of the judged window"),
  figure("calls", "Calls", ({ calls }) => calls, per.calls),
  ...(onDevice
    ? [
        figure<OperatorRow>("reached", "Of its roof", ({ reached }) => reached, share, NEAR_ROOF),
        { key: "roof", title: "Roof", hint: "What would limit it, by its arithmetic intensity", figure: false, value: (row: OperatorRow) => row.roof || undefined, cell: (row: OperatorRow) => (row.roof ? roof(row.roof) : "–") },
      ]
    : []),
];

const syncColumns = (linkTo: LinkTo, per: PerStep): readonly Column<SyncRow>[] => [
  {
    key: "line",
    title: "Where",
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
