// What fills the memory at its peak, over a step, by place; what is wrong with it, and what would fit.
import { useState } from "preact/hooks";
import { memoryColourOf } from "../../shared/colours";
import { addStyle } from "../../shared/page/style_sheet";
import type { Memory, MemoryFinding, MemoryForecast, MemoryPart, MemorySite, Report } from "../../shared/report";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { bytes, count, evidence as valueOf, share } from "../../shared/text/format";
import { CodeBlock } from "../../shared/widgets/code_block";
import { SortableTable } from "../../shared/widgets/sortable_table";
import { Curve } from "./curve";
import sheet from "./memory.css";
import { grouped, groupings, type Group, type Grouping } from "./stack";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

export function MemoryView({ report: { memory } }: { report: Report }) {
  if (!memory) return <p class="muted">No memory was recorded: use profile(..., profile_memory=True).</p>;
  return (
    <div class="memory">
      <Summary memory={memory} />
      {memory.findings.map((finding) => (
        <FindingCard key={finding.cause} finding={finding} />
      ))}
      {memory.parts.length > 0 && <Parts parts={memory.parts} />}
      {memory.curve && <Curve curve={memory.curve} />}
      {memory.sites.length > 0 && <Places sites={memory.sites} titles={new Map(memory.parts.map(({ kind, title }) => [kind, title]))} />}
      {memory.forecasts.length > 0 && <Forecasts forecasts={memory.forecasts} />}
    </div>
  );
}

function Summary({ memory }: { memory: Memory }) {
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

const TITLES: Readonly<Record<Grouping, string>> = { place: "Place", module: "Module", line: "Line", operator: "Operator" };

function Places({ sites, titles }: { sites: readonly MemorySite[]; titles: ReadonlyMap<string, string> }) {
  const available = groupings(sites);
  const [by, setBy] = useState<Grouping>(available[0] ?? "place");
  return (
    <>
      {available.length > 1 && (
        <div class="controls">
          <div class="buttons" role="group" aria-label="Group by">
            {available.map((each) => (
              <button key={each} type="button" aria-pressed={each === by} onClick={() => setBy(each)}>
                {TITLES[each]}
              </button>
            ))}
          </div>
        </div>
      )}
      <SortableTable<Group>
        key={by}
        caption="Where it was allocated"
        rows={grouped(sites, by)}
        initial={{ by: "bytes", descending: true }}
        searchText={({ name }) => name}
        columns={[
          { key: "name", title: TITLES[by], figure: false, value: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
          { key: "bytes", title: "Bytes", figure: true, value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
          { key: "blocks", title: "Blocks", figure: true, value: (row) => row.blocks, cell: (row) => count(row.blocks) },
          {
            key: "kinds",
            title: "Category",
            figure: false,
            value: ({ kinds }) => kinds[0],
            cell: ({ kinds }) => kinds.map((kind) => titles.get(kind) ?? kind).join(", "),
          },
        ]}
      />
    </>
  );
}

function FindingCard({ finding }: { finding: MemoryFinding }) {
  const { cause, title, severity, evidence, fix } = finding;
  return (
    <section class="card finding" data-cause={cause} data-severity={severity}>
      <h3>{title}</h3>
      <dl class="memory-evidence">
        {evidence.map((item) => (
          <div key={item.label}>
            <dt>{item.label}</dt>
            <dd>{valueOf(item)}</dd>
          </div>
        ))}
      </dl>
      {fix && (
        <>
          <p class="summary">{fix.summary}</p>
          {fix.code && <CodeBlock text={fix.code} label={`code that fixes “${title}”`} />}
          {fix.confirm && (
            <p class="confirm">
              <strong>To confirm:</strong> {fix.confirm}
            </p>
          )}
        </>
      )}
    </section>
  );
}

function Forecasts({ forecasts }: { forecasts: readonly MemoryForecast[] }) {
  return (
    <section>
      <h2>What would fit</h2>
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
              <td>{fits === undefined ? "not known" : fits ? "yes" : "perhaps not"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
