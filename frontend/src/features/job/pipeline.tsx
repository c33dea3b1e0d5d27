// One step of a pipeline: when each stage works on which microbatch, and when it waits.
import { useState } from "preact/hooks";
import { phaseColour } from "../../shared/colours";
import type { PipelineTable, RankTable } from "../../shared/report";
import { count, duration, shortShare } from "../../shared/text/format";
import { describeRow, rowsOf, type PipelineRow, type Span } from "./pipeline_rows";

interface Props {
  readonly pipeline: PipelineTable | undefined;
  readonly table: RankTable;
  readonly openRank: (rank: number) => void;
}

const PHASES: ReadonlyMap<string, string> = new Map([
  ["forward", "Forward"],
  ["backward", "Backward"],
  ["both", "Forward and backward"],
  ["other", "Optimizer, weights and other work"],
]);

const NARROW = 0.016; // of the step: a number would not fit

export function Pipeline({ pipeline, table, openRank }: Props) {
  const [path, setPath] = useState(true);
  if (!pipeline || pipeline.rank.length === 0) return null;
  const { rows, length } = rowsOf(pipeline, table);
  const present = [...PHASES].filter(([phase]) => pipeline.phase.includes(phase));
  return (
    <section class={`rank-timeline pipeline${path ? " with-path" : ""}`}>
      <h2>Stages of the pipeline, step {count(pipeline.step)}</h2>
      <label class="check">
        <input type="checkbox" checked={path} onChange={({ currentTarget }) => setPath(currentTarget.checked)} /> Critical path
      </label>
      <ol>
        {rows.map((row) => (
          <StageRow key={row.rank} row={row} length={length} open={() => openRank(row.rank)} />
        ))}
      </ol>
      <div class="axis muted" aria-hidden="true">
        <span>{duration(0)}</span>
        <span>{duration(length / 2)}</span>
        <span>{duration(length)}</span>
      </div>
      <ul class="legend">
        {present.map(([phase, name]) => (
          <li key={phase}>
            <span class="swatch" aria-hidden="true" style={{ backgroundColor: phaseColour(phase) }} />
            {name}
          </li>
        ))}
        <li>
          <span class="swatch waiting" aria-hidden="true" />
          Waiting and transfers
        </li>
      </ul>
      <p class="muted footnote">
        Numbers count the passes of a rank. The critical path is outlined: the step is as long as the work and the transfers on it, from the rank that is ready last back
        to the one that holds it up.
        {rows.length < table.rank.length && ` ${count(rows.length)} of ${count(table.rank.length)} ranks are shown: the replicas with most of the path.`}
      </p>
    </section>
  );
}

function StageRow({ row, length, open }: { row: PipelineRow; length: number; open: () => void }) {
  return (
    <li>
      <span class="name">
        <button type="button" class="link" title="Show the diagnosis of this rank" onClick={open}>
          Rank {count(row.rank)}
        </button>
        {row.stage !== undefined && <span class="muted">stage {count(row.stage)}</span>}
      </span>
      <span class="track waiting" role="img" aria-label={describeRow(row, length)}>
        {row.spans.map((span, index) => (
          <Block key={index} span={span} length={length} />
        ))}
      </span>
    </li>
  );
}

function Block({ span: { begin, end, phase, microbatch, critical }, length }: { span: Span; length: number }) {
  const share = (end - begin) / length;
  const name = PHASES.get(phase) ?? phase;
  return (
    <span
      class={`pass${critical ? " critical" : ""}`}
      title={`${name}${microbatch > 0 ? ` ${microbatch}` : ""}, ${duration(end - begin)} (${shortShare(share)} of the step)${critical ? ", on the critical path" : ""}`}
      style={{ insetInlineStart: `${(100 * begin) / length}%`, width: `${100 * share}%`, backgroundColor: phaseColour(phase) }}
    >
      {microbatch > 0 && share > NARROW ? microbatch : ""}
    </span>
  );
}
