// The peak of this recording against that of another one. Any recording with memory can be chosen, also snapshots.
import { useState } from "preact/hooks";
import type { Memory, RunEntry } from "../../shared/report";
import { keyOf } from "../../shared/run/keys";
import type { Session } from "../../shared/run/session";
import { poll } from "../../shared/server/polling";
import { runName, sourceName } from "../../shared/text/names";
import { MemoryDifference } from "../../shared/widgets/memory_difference";
import { Request } from "../../shared/widgets/request";

interface Props {
  readonly memory: Memory;
  readonly entry: RunEntry;
  readonly runs: readonly RunEntry[];
  readonly session: Session;
  readonly baseline: string | undefined;
}

export function Compared({ memory, entry, runs, session, baseline }: Props) {
  const others = runs.filter((each) => keyOf(each) !== keyOf(entry) && each.state === "done");
  const [chosen, choose] = useState(baseline ?? "");
  const other = others.find((each) => keyOf(each) === chosen);
  if (others.length === 0) return null;
  const folders = [...new Set(others.map(({ run }) => run))];
  return (
    <section class="memory-compared">
      <label>
        Compare the peak with{" "}
        <select value={other ? chosen : ""} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">no other recording</option>
          {folders.map((run) => (
            <optgroup key={run} label={runName(run)}>
              {others.filter((each) => each.run === run).map((each) => (
                <option key={keyOf(each)} value={keyOf(each)}>
                  {`${runName(run)} › ${sourceName(each.source)}`}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      {other && (
        <Request subject={`${other.id} memory`} version={other.state} waiting="Reading the other recording’s report…" send={(signal, onProgress) => poll(() => session.client.report(other.id, signal), signal, onProgress)}>
          {({ report }) =>
            report?.memory && report.memory.parts.length > 0 ? (
              <MemoryDifference a={report.memory} b={memory} names={[`${runName(other.run)}`, "this recording"]} />
            ) : (
              <p class="muted">No memory was recorded there.</p>
            )
          }
        </Request>
      )}
    </section>
  );
}
