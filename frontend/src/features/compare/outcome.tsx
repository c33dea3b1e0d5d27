// What a comparison says in words: its two sides, its answer, what differs around them, what to keep in mind.
import { comparisonMarkdown } from "./markdown";
import { outcome, testBeside } from "./summary";
import { count, duration, share } from "../../shared/text/format";
import type { BatchSize, Comparison, ContextRow, Report, RunEntry } from "../../shared/report";
import { health } from "../../shared/text/vocabulary";
import { Answer } from "../../shared/widgets/answer";
import { Health } from "../../shared/widgets/health";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";

export interface BothProps {
  readonly told: Comparison;
  readonly a: RunEntry;
  readonly b: RunEntry;
  readonly before: Report | undefined; // A's report
  readonly after: Report; // B's report
  /** Opens the diagnosis of a side, at a cause's card where one is named. */
  readonly show: (side: "a" | "b", cause: string | undefined) => void;
}

export function Sides({ told, a, b, before, after, show }: BothProps) {
  return (
    <section class="pair" aria-label="What is compared">
      <Side letter="A" entry={a} told={told} ns={told.a_ns} steps={told.a_steps} batch={told.a_batch} device={before?.device?.name} show={() => show("a", undefined)} />
      <Side letter="B" entry={b} told={told} ns={told.b_ns} steps={told.b_steps} batch={told.b_batch} device={after.device?.name} show={() => show("b", undefined)} />
    </section>
  );
}

interface SideProps {
  readonly letter: "A" | "B";
  readonly entry: RunEntry;
  readonly told: Comparison;
  readonly ns: number;
  readonly steps: number;
  readonly batch: BatchSize | undefined;
  readonly device: string | undefined;
  readonly show: () => void;
}

function Side({ letter, entry, told, ns, steps, batch, device, show }: SideProps) {
  const facts = [
    device,
    told.comparable && (steps === 1 ? "one step" : `${count(steps)} steps`),
    batch && (batch.samples === 1 ? "one sample per step" : `${count(batch.samples)} samples per step`),
  ].filter(Boolean);
  const state = health(entry.health);
  return (
    <div class="side">
      <span class="letter" aria-hidden="true">
        {letter}
      </span>
      <div class="who">
        <button type="button" class="link" title={`${entry.run}/${entry.source}`} onClick={show}>
          <span class="spoken">{letter}: </span>
          <RecordingName of={entry} />
          <span class="spoken">, show its diagnosis</span>
        </button>
        <small title={batch && `Samples per step, told by ${batch.basis}`}>{facts.join(" · ")}</small>
        {entry.health !== "ok" && (
          <small class={`tone-${state.tone}`}>
            <Icon name={state.icon} /> {state.text}
          </small>
        )}
      </div>
      {told.comparable && (
        <span class="time figure">
          {duration(ns)} <small>per {told.per}</small>
        </span>
      )}
    </div>
  );
}

export function Outcome({ told, before, after }: BothProps) {
  const test = testBeside(told);
  const noise = told.noise > 0 && <li class="badge">± {share(told.noise)}</li>;
  return (
    <Answer headline={told.headline} badge={outcome(told)} markdown={() => comparisonMarkdown(told, before, after)} badges={noise}>
      {test && <p class="muted footnote">{test}</p>}
    </Answer>
  );
}

/** Why there is no comparison: what is wrong with each side that gives no verdict, and what mends it. */
export function Refused({ told, a, b, before, after }: BothProps) {
  const sides = [{ letter: "A", entry: a, report: before }, { letter: "B", entry: b, report: after }];
  const ill = sides.filter(({ report }) => report && !report.verdict);
  return (
    <section class="refused">
      <h2 class="answer">{ill.length === 2 ? "Neither A nor B gives" : `${ill[0]?.letter ?? "One side"} gives`} no verdict, so there is nothing to compare.</h2>
      {ill.map(({ letter, entry, report }) => (
        <div key={letter}>
          <p>
            <b>
              {letter}: <RecordingName of={entry} />
            </b>
          </p>
          {report?.health && <Health health={report.health} />}
        </div>
      ))}
      {ill.length === 0 && <Notes told={told} />}
    </section>
  );
}

export function Context({ rows }: { rows: readonly ContextRow[] }) {
  return (
    <section class="around">
      <h2>What differs around them</h2>
      {rows.length === 0 ? (
        <p class="muted">Nothing that was recorded of their devices, versions and settings.</p>
      ) : (
        <table aria-label="What differs around them">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ key, title, a, b }) => (
              <tr key={key}>
                <th scope="row">{title || key}</th>
                <td data-side="A">{a || "not known"}</td>
                <td data-side="B">{b || "not known"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function Notes({ told: { notes, comparable } }: { told: Comparison }) {
  return <Listed lines={notes} title={comparable ? "To keep in mind" : "Why not"} />;
}

/** Sentences under a heading, where there are any. */
export function Listed({ lines, title }: { lines: readonly string[]; title: string }) {
  if (lines.length === 0) return null;
  return (
    <section class="notes">
      <h2>{title}</h2>
      <ul>
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
