// What fills the memory at its peak, over a step, by place; what is wrong with it, and what would fit.
import { memoryColourOf } from "../../shared/colours";
import { save } from "../../shared/page/download";
import { addStyle } from "../../shared/page/style_sheet";
import type { Memory, MemoryForecast, MemoryPart, Report, RunEntry } from "../../shared/report";
import type { Session } from "../../shared/run/session";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { bytes, share } from "../../shared/text/format";
import { fileStem, runName } from "../../shared/text/names";
import { FindingCard } from "../../shared/widgets/finding_card";
import { Compared } from "./compared";
import { Curve } from "./curve";
import { History } from "./history";
import { Lifetimes } from "./lifetimes";
import sheet from "./memory.css";
import { Places } from "./places";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly runs: readonly RunEntry[];
  readonly session: Session;
  /** The recording that the address names for comparison. */
  readonly baseline: string | undefined;
}

export function MemoryView({ report, ...others }: Props) {
  const { memory } = report;
  if (!memory) return <p class="muted">No memory was recorded: use profile(..., profile_memory=True).</p>;
  const { parts, curve, history, lifetimes, forecasts, findings } = memory;
  const titles = new Map([...parts, ...(curve?.series ?? [])].map(({ kind, title }) => [kind, title]));
  const download = () => save(`${runName(report.run)}_${fileStem(report.source)}_memory.json`, new Blob([JSON.stringify(memory, null, 1)], { type: "application/json" }));
  return (
    <div class="memory">
      <Summary memory={memory} download={download} />
      {findings.map((finding) => (
        <FindingCard key={finding.cause} {...finding} />
      ))}
      {parts.length > 0 && <Parts parts={parts} />}
      {curve && <Curve curve={curve} />}
      {history && <History history={history} />}
      {parts.length > 0 && memory.evidence_source !== "telemetry" && <Places memory={memory} />}
      {curve && lifetimes.length > 0 && <Lifetimes lifetimes={lifetimes} curve={curve} titles={titles} />}
      {forecasts.length > 0 && <Forecasts forecasts={forecasts} />}
      {parts.length > 0 && <Compared memory={memory} {...others} />}
    </div>
  );
}

function Summary({ memory, download }: { memory: Memory; download: () => void }) {
  const { peak_bytes: peak, capacity_bytes: capacity, headroom_bytes: headroom, missing } = memory;
  return (
    <section>
      <h2>{memory.parts.length > 0 ? `${bytes(peak)} at the peak` : "Memory"}</h2>
      {capacity !== undefined && (
        <p>
          {share(peak / capacity)} of {bytes(capacity)}; <b>{bytes(headroom ?? 0)}</b> were free.
        </p>
      )}
      {missing && <p class="muted footnote">{missing}</p>}
      <p class="on-screen">
        <button type="button" class="link" onClick={download}>
          Download as JSON
        </button>
      </p>
    </section>
  );
}

function Parts({ parts }: { parts: readonly MemoryPart[] }) {
  const rows = [...parts].sort((a, b) => b.bytes - a.bytes);
  return (
    <section>
      <h2>What fills it</h2>
      <div class="memory-bar" role="img" aria-label={rows.map(({ title, share: part }) => `${title} ${share(part)}`).join(", ")}>
        {rows.map(({ kind, title, share: part }) => (
          <span key={kind} title={`${title}: ${share(part)}`} style={{ flexGrow: part, backgroundColor: memoryColourOf(kind) }} />
        ))}
      </div>
      <table aria-label="Memory at the peak, by category">
        <thead>
          <tr>
            <th scope="col">Category</th>
            <th scope="col" class="figure">Bytes</th>
            <th scope="col" class="figure">Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ kind, title, bytes: size, share: part }) => (
            <tr key={kind}>
              <th scope="row">
                <span class="swatch" style={{ backgroundColor: memoryColourOf(kind) }} />
                {title}
              </th>
              <td class="figure">{bytes(size)}</td>
              <td class="figure">{share(part)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Forecasts({ forecasts }: { forecasts: readonly MemoryForecast[] }) {
  return (
    <section>
      <h2>What would fit</h2>
      <div class="scrolled" role="region" aria-label="Predicted peaks" tabIndex={0}>
        <table aria-label="Predicted peaks">
          <thead>
            <tr>
              <th scope="col">With</th>
              <th scope="col" class="figure">Peak</th>
              <th scope="col" class="figure">90 % interval</th>
              <th scope="col">Fits</th>
            </tr>
          </thead>
          <tbody>
            {forecasts.map(({ change, title, peak_bytes, low_bytes, high_bytes, fits, assumes }) => (
              <tr key={change}>
                <th scope="row">
                  {title}
                  <small> assumes that {assumes}</small>
                </th>
                <td class="figure">{bytes(peak_bytes)}</td>
                <td class="figure">
                  {bytes(low_bytes)} to {bytes(high_bytes)}
                </td>
                <td class="fits">{fits === undefined ? "not known" : fits ? "yes" : "perhaps not"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
