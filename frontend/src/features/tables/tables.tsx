// What ran in the judged window: the account step by step, kernels, operators, waits, copies.
import { settled } from "../../shared/server/polling";
import { bytes, count, duration, rate, share } from "../../shared/text/format";
import { kernelName } from "../../shared/text/names";
import type { CopyRow, KernelRow, LeftOut, OperatorRow, Tables as Message, SyncRow } from "../../shared/report";
import { addStyle } from "../../shared/page/style_sheet";
import type { Focus } from "../../app/state";
import charts from "../../shared/style/charts.css";
import sheet from "../../shared/style/view.css";
import { roof, wait } from "../../shared/text/vocabulary";
import { Awaited } from "../../shared/widgets/request";
import type { EvidenceProps } from "../../shared/run/view_props";
import { Sortable, type Column } from "../../shared/widgets/sortable_table";
import { StepAccount } from "./step_account";
import { Swatch } from "../../shared/widgets/swatch";

addStyle(charts);
addStyle(sheet);

export function TablesView({ client, entry, report, look }: EvidenceProps) {
  return (
    <Awaited
      about={`${entry.id} tables`}
      since={report}
      waiting="Reading the recording…"
      ask={(signal, tell) => settled(() => client.tables(entry.id, signal), signal, tell)}
    >
      {({ tables }) =>
        tables && tables.window_ns > 0 ? (
          <Content tables={tables} look={look} onDevice={report.device?.kind !== "cpu" && ranOnDevice(tables)} inSteps={report.window?.basis !== "whole"} />
        ) : (
          <p class="muted">Nothing ran in this recording.</p>
        )
      }
    </Awaited>
  );
}

/** A device may be there and have nothing to do. */
const ranOnDevice = ({ kernels, operators, copies }: Message): boolean =>
  kernels.length > 0 || copies.length > 0 || operators.some(({ device_ns }) => device_ns > 0);

interface ContentProps {
  readonly tables: Message;
  readonly look: (focus: Focus) => void;
  readonly onDevice: boolean;
  readonly inSteps: boolean;
}

function Content({ tables, look, onDevice, inSteps }: ContentProps) {
  const named = (name: string, row: Place) => <Named name={name} row={row} look={look} />;
  return (
    <>
      {inSteps && tables.step_account && tables.step_account.steps.length > 1 && (
        <StepAccount columns={tables.step_account} look={look} />
      )}
      {tables.kernels.length > 0 && (
        <Sortable
          caption="Kernels"
          rows={tables.kernels}
          columns={kernelColumns(named)}
          first={{ by: "total", down: true }}
          words={({ name, precision, unit, regime }) => `${name} ${precision} ${unit} ${regime}`}
          note={<Rest left={tables.kernels_left_out} window={tables.window_ns} />}
        />
      )}
      <Sortable
        caption="Operators"
        rows={tables.operators}
        columns={operatorColumns(named, onDevice)}
        first={{ by: onDevice ? "device" : "host", down: true }}
        words={({ name }) => name}
        note={<Rest left={tables.operators_left_out} window={tables.window_ns} />}
      />
      {onDevice &&
        (tables.syncs.length > 0 ? (
          <Sortable
            caption="Waits for the device that cost time, by place"
            rows={tables.syncs}
            columns={waitColumns(named)}
            first={{ by: "cost", down: true }}
            words={({ operator, line, kind }) => `${operator} ${line} ${kind}`}
            note={
              tables.syncs.every(({ line }) => !line) && (
                <span class="muted">with_stack=True in the profiler would name the lines of your program.</span>
              )
            }
          />
        ) : (
          <p class="muted">No wait of the host for the device cost any time.</p>
        ))}
      {tables.copies.length > 0 && (
        <Sortable caption="Copies and fills" rows={tables.copies} columns={copyColumns(named)} first={{ by: "total", down: true }} />
      )}
    </>
  );
}

type Place = { readonly begin_ns: number; readonly end_ns: number };
type Name = (name: string, row: Place) => preact.JSX.Element;

/** A name that leads to its longest occurrence on the timeline. */
function Named({ name, row, look }: { name: string; row: Place; look: (focus: Focus) => void }) {
  return (
    <button
      type="button"
      class="link long-name"
      title={`${name}\n(shows the longest one on the timeline)`}
      onClick={() => look({ begin: row.begin_ns, end: row.end_ns, label: "The longest one" })}
    >
      {kernelName(name)}
    </button>
  );
}

const NEAR = "How near it comes to what bounds it; needs record_shapes=True";

const kernelColumns = (named: Name): readonly Column<KernelRow>[] => [
  { key: "name", title: "Kernel", figure: false, value: ({ name }) => name, cell: (row) => named(row.name, row) },
  figure("total", "Time", ({ total_ns }) => total_ns, duration),
  figure("share", "Share", (row) => row.share, share, "Of the judged window; kernels that overlap count twice"),
  figure("calls", "Calls", ({ calls }) => calls, count),
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
  figure("reached", "Of its roof", ({ reached }) => reached, share, NEAR),
  {
    key: "type",
    title: "Multiplies",
    hint: "The type, and whether on tensor cores, as the kernel’s name tells",
    figure: false,
    value: ({ unit, precision }) => `${unit} ${precision}`.trim() || undefined,
    cell: ({ unit, precision }) => (unit || precision ? `${precision} ${unit === "tensor" ? "on tensor cores" : unit === "vector" ? "without tensor cores" : ""}` : "–"),
  },
];

const operatorColumns = (named: Name, onDevice: boolean): readonly Column<OperatorRow>[] => [
  { key: "name", title: "Operator", figure: false, value: ({ name }) => name, cell: (row) => named(row.name, row) },
  ...(onDevice
    ? [figure<OperatorRow>("device", "Device time", ({ device_ns }) => device_ns, duration, "Of the kernels that it launches itself")]
    : []),
  figure("host", "Host time", ({ host_ns }) => host_ns, duration, "Without the operators that it calls"),
  figure("share", "Share", (row) => row.share, share, onDevice ? "Device time, of the judged window" : "Of the judged window"),
  figure("calls", "Calls", ({ calls }) => calls, count),
  ...(onDevice
    ? [
        figure<OperatorRow>("reached", "Of its roof", ({ reached }) => reached, share, NEAR),
        { key: "roof", title: "Roof", hint: "What would bound it, by its arithmetic for each byte", figure: false, value: (row: OperatorRow) => row.roof || undefined, cell: (row: OperatorRow) => (row.roof ? roof(row.roof) : "–") },
      ]
    : []),
];

const waitColumns = (named: Name): readonly Column<SyncRow>[] => [
  {
    key: "line",
    title: "Where",
    figure: false,
    value: ({ line, operator }) => line || operator,
    cell: (row) => (
      <>
        {named(row.line || row.operator, row)}
        {row.line && <small>{row.operator}</small>}
      </>
    ),
  },
  { key: "kind", title: "Waits for", figure: false, value: ({ kind }) => kind, cell: ({ kind }) => wait(kind) },
  figure("cost", "Device idled", ({ cost_ns }) => cost_ns, duration, "What the waits cost: not the time in the calls, but the time without work"),
  figure("share", "Share", (row) => row.share, share, "Of the judged window"),
  figure("waited", "Host waited", ({ waited_ns }) => waited_ns, duration),
  figure("calls", "Calls", ({ calls }) => calls, count),
];

const copyColumns = (named: Name): readonly Column<CopyRow>[] => [
  { key: "name", title: "Kind", figure: false, value: ({ name }) => name, cell: (row) => named(row.name, row) },
  figure("total", "Time", ({ total_ns }) => total_ns, duration),
  figure("share", "Share", (row) => row.share, share, "Of the judged window"),
  figure("calls", "Calls", ({ calls }) => calls, count),
  figure("bytes", "Moved", (row) => row.bytes, bytes),
  figure("rate", "Rate", ({ bytes_per_s }) => bytes_per_s, rate, "Mean over all of them"),
];

function figure<T>(key: string, title: string, value: (row: T) => number | undefined, shown: (value: number) => string, hint = ""): Column<T> {
  return {
    key,
    title,
    figure: true,
    value,
    cell: (row) => {
      const found = value(row);
      return found === undefined ? "–" : shown(found);
    },
    ...(hint ? { hint } : {}),
  };
}

function Rest({ left, window }: { left: LeftOut | undefined; window: number }) {
  if (!left || left.rows === 0) return null;
  return (
    <span class="muted">
      {count(left.rows)} more, together {duration(left.total_ns)} ({share(left.total_ns / window)}), are not listed.
    </span>
  );
}
