// What the monitor could not measure, and what was lost on the way.
import { count, epochMs, moment } from "../../shared/text/format";
import { words } from "../../shared/text/names";
import type { TelemetryAnswer } from "../../shared/report";

export function Losses({ answer: { context, notes, lost_packets, dropped } }: { answer: TelemetryAnswer }) {
  const unsupported = context?.unsupported ?? [];
  const told = [...(context?.notes ?? []), ...notes];
  if (unsupported.length === 0 && told.length === 0 && lost_packets === 0 && dropped.length === 0) return null;
  return (
    <details>
      <summary>What could not be measured, and what happened to the monitor</summary>
      <ul class="losses">
        {lost_packets > 0 && <li>{count(lost_packets)} packets of readings were lost.</li>}
        {dropped.map(({ reason, count: many }) => (
          <li key={reason}>
            {count(many)} could not be used: {words(reason)}.
          </li>
        ))}
        {unsupported.map(({ name, because }, index) => (
          <li key={`${name} ${index}`}>
            <b>{words(name)}</b>: {because}
          </li>
        ))}
        {told.map(({ unix_ns, code, detail }, index) => (
          <li key={index}>
            {moment(epochMs(unix_ns))} <b>{words(code)}</b>: {detail}
          </li>
        ))}
      </ul>
    </details>
  );
}
