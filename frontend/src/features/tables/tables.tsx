// What ran in the analysed window: the account of each step, kernels, operators, waits, copies.
import { useMemo, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { LeftOut, Tables as Message } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { count, duration, share } from "../../shared/text/format";
import { distinctNames } from "../../shared/text/names";
import { Request } from "../../shared/widgets/request";
import { SortableTable } from "../../shared/widgets/sortable_table";
import { communicationColumns, copyColumns, criticalColumns, kernelColumns, OccurrenceLink, operatorColumns, perStep, syncColumns, type Occurrence } from "./columns";
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

function LeftOutNote({ left, window }: { left: LeftOut | undefined; window: number }) {
  if (!left || left.rows === 0) return null;
  return (
    <span class="muted">
      {count(left.rows)} more are not listed: {duration(left.total_ns)} in total ({share(left.total_ns / window)}).
    </span>
  );
}
