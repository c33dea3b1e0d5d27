// The texts of a comparison: the two runs, the result, and the differences of their environments.
import type { BatchSize, Comparison, ContextRow, Report, RunEntry } from "../../shared/report";
import { count, duration, share } from "../../shared/text/format";
import { health } from "../../shared/text/vocabulary";
import { Answer } from "../../shared/widgets/answer";
import { Health } from "../../shared/widgets/health";
import { Icon } from "../../shared/widgets/icon";
import { Notes } from "../../shared/widgets/notes";
import { RecordingName } from "../../shared/widgets/recording_name";
import { outcome, testNote } from "./summary";

export interface PairProps {
  readonly comparison: Comparison;
  readonly a: RunEntry;
  readonly b: RunEntry;
  readonly reportA: Report | undefined;
  readonly reportB: Report;
  /** Opens the diagnosis of a run, at the card of a cause if one is given. */
  readonly show: (run: "a" | "b", cause: string | undefined) => void;
}

export function ComparedRuns({ comparison, a, b, reportA, reportB, show }: PairProps) {
  return (
    <section class="pair" aria-label="Compared recordings">
      <ComparedRun letter="A" entry={a} comparison={comparison} ns={comparison.a_ns} unprofiled={comparison.unprofiled?.a_ns} steps={comparison.a_steps} batch={comparison.a_batch} device={reportA?.device?.name} show={() => show("a", undefined)} />
      <ComparedRun letter="B" entry={b} comparison={comparison} ns={comparison.b_ns} unprofiled={comparison.unprofiled?.b_ns} steps={comparison.b_steps} batch={comparison.b_batch} device={reportB.device?.name} show={() => show("b", undefined)} />
    </section>
  );
}

interface ComparedRunProps {
  readonly letter: "A" | "B";
  readonly entry: RunEntry;
  readonly comparison: Comparison;
  readonly ns: number; // of the recorded steps
  readonly unprofiled: number | undefined; // without the profiler, if both runs measured it
  readonly steps: number;
  readonly batch: BatchSize | undefined;
  readonly device: string | undefined;
  readonly show: () => void;
}

function ComparedRun({ letter, entry, comparison, ns, unprofiled, steps, batch, device, show }: ComparedRunProps) {
  const facts = [
    device,
    comparison.comparable && (steps === 1 ? "one step" : `${count(steps)} steps`),
    batch && (batch.samples === 1 ? "one sample per step" : `${count(batch.samples)} samples per step`),
  ].filter(Boolean);
  const state = health(entry.health);
  return (
    <div class="compared-run">
      <span class="letter" aria-hidden="true">
        {letter}
      </span>
      <div class="run">
        <button type="button" class="link" title={`${entry.run}/${entry.source}`} onClick={show}>
          <span class="visually-hidden">{letter}: </span>
          <RecordingName of={entry} />
          <span class="visually-hidden">, show its diagnosis</span>
        </button>
        <small title={batch && `Samples per step, from ${batch.basis}`}>{facts.join(" · ")}</small>
        {entry.health !== "ok" && (
          <small class={`tone-${state.tone}`}>
            <Icon name={state.icon} /> {state.text}
          </small>
        )}
      </div>
      {comparison.comparable && (
        <span class="time figure">
          {duration(unprofiled ?? ns)} <small>per {comparison.per}</small>
          {unprofiled !== undefined && <small title="The profiler lengthens steps; the changes by kind of time are of the recorded steps">{duration(ns)} recorded</small>}
        </span>
      )}
    </div>
  );
}

export function Outcome({ comparison }: { readonly comparison: Comparison }) {
  const test = testNote(comparison);
  const spread = (comparison.unprofiled ?? comparison).noise;
  const noise = spread > 0 && <li class="badge">± {share(spread)}</li>;
  return (
    <Answer headline={comparison.headline} badge={outcome(comparison)} badges={noise}>
      {test && <p class="muted footnote">{test}</p>}
    </Answer>
  );
}

/** Why there is no comparison: the defects of each run without a verdict, and their fixes. */
export function NotComparable({ comparison, a, b, reportA, reportB }: PairProps) {
  const runs = [{ letter: "A", entry: a, report: reportA }, { letter: "B", entry: b, report: reportB }];
  const unjudged = runs.filter(({ report }) => report && !report.verdict);
  return (
    <section class="not-comparable">
      <h2 class="answer">{unjudged.length === 2 ? "Neither A nor B has" : `${unjudged[0]?.letter ?? "One run"} has`} {unjudged.length === 2 ? "a" : "no"} verdict, so there is nothing to compare.</h2>
      {unjudged.map(({ letter, entry, report }) => (
        <div key={letter}>
          <p>
            <b>
              {letter}: <RecordingName of={entry} />
            </b>
          </p>
          {report?.health && <Health health={report.health} />}
        </div>
      ))}
      {unjudged.length === 0 && <Notes lines={comparison.notes} title="Reasons" />}
    </section>
  );
}

export function Environment({ rows }: { rows: readonly ContextRow[] }) {
  return (
    <section class="environment">
      <h2>Environment differences</h2>
      {rows.length === 0 ? (
        <p class="muted">No recorded difference in device, versions or settings.</p>
      ) : (
        <table aria-label="Environment differences">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ key, title, a, b }) => (
              <tr key={key}>
                <th scope="row">{title || key}</th>
                <td data-side="A">{a || "unknown"}</td>
                <td data-side="B">{b || "unknown"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
