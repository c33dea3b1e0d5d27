// What the monitor could not measure, and data that was lost.
import type { TelemetryAnswer } from "../../shared/report";
import { count, epochMs, moment } from "../../shared/text/format";
import { words } from "../../shared/text/identifier";

export function DataLoss({ data: { context, notes, lost_packets, dropped } }: { data: TelemetryAnswer }) {
  const unsupported = context?.unsupported ?? [];
  const events = [...(context?.notes ?? []), ...notes];
  if (unsupported.length === 0 && events.length === 0 && lost_packets === 0 && dropped.length === 0) return null;
  return (
    <details>
      <summary>Missing measurements and events of the monitor</summary>
      <ul class="data-loss">
        {lost_packets > 0 && <li>{count(lost_packets)} packets of telemetry were lost.</li>}
        {dropped.map(({ reason, count: rows }) => (
          <li key={reason}>
            {count(rows)} could not be used: {words(reason)}.
          </li>
        ))}
        {unsupported.map(({ name, because }, index) => (
          <li key={`${name} ${index}`}>
            <b>{words(name)}</b>: {because}
          </li>
        ))}
        {events.map(({ unix_ns, code, detail }, index) => (
          <li key={index}>
            {moment(epochMs(unix_ns))} <b>{words(code)}</b>: {detail}
          </li>
        ))}
      </ul>
    </details>
  );
}
