// The ranks of a running job over time: a heat map of what the chosen figure was in each part of the run, and the stacks of
// ranks that do not move.
import { useEffect, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { LiveJob, LiveRank } from "../../shared/live";
import type { Client } from "../../shared/server/api";
import { count, sample, timeOfDay } from "../../shared/text/format";
import { shade } from "./shade";
import sheet from "./live.css";

addStyle(sheet);

const EVERY_MS = 5_000;
const MAX_ROWS = 64;
const MS_PER_S = 1_000;

interface Figure {
  readonly title: string;
  readonly column: number;
  /** True if a larger value is worse. */
  readonly large: boolean;
  readonly text: (value: number) => string;
}

export const FIGURES: readonly Figure[] = [
  { title: "own host time", column: 4, large: true, text: (value) => sample(value, "ns") },
  { title: "step time", column: 2, large: true, text: (value) => sample(value, "ns") },
  { title: "wait for data", column: 3, large: true, text: (value) => sample(value, "ns") },
  { title: "clock of the GPU", column: 5, large: false, text: (value) => sample(value, "Hz") },
];

/** Polls the job of a run directory while it is shown. */
function useLiveJob(client: Client, run: string): LiveJob | undefined {
  const [job, setJob] = useState<LiveJob>();
  useEffect(() => {
    const stop = new AbortController();
    const ask = async () => {
      const answer = await client.liveJob(run, stop.signal);
      if (answer.kind === "ok") setJob(answer.value.jobs[0]);
    };
    void ask();
    const timer = setInterval(() => void ask(), EVERY_MS);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [client, run]);
  return job;
}

export function RankHistory({ client, run }: { client: Client; run: string }) {
  const job = useLiveJob(client, run);
  const figures = FIGURES.filter(({ column }) => job?.ranks.some(({ history }) => history?.some((row) => (row[column] ?? 0) > 0)));
  const [chosen, choose] = useState("");
  const figure = figures.find(({ title }) => title === chosen) ?? figures[0];
  if (!job || !figure) return null;
  const values = job.ranks.flatMap(({ history }) => (history ?? []).map((row) => row[figure.column] ?? 0)).filter((value) => value > 0);
  const usual = median(values);
  const still = job.ranks.filter(({ stacks }) => stacks && stacks.length > 0);
  return (
    <section class="rank-history">
      <header class="controls">
        <h2>{job.ranks.length > 1 ? "Ranks over time" : "Over time"}</h2>
        <label>
          <span class="muted">Colour </span>
          <select value={figure.title} onChange={(event) => choose(event.currentTarget.value)}>
            {figures.map(({ title }) => (
              <option key={title}>{title}</option>
            ))}
          </select>
        </label>
      </header>
      <table>
        <thead>
          <tr>
            <th scope="col" class="figure">Rank</th>
            <th scope="col">State</th>
            <th scope="col" class="figure">Step</th>
            <th scope="col">{figure.title} over the run</th>
            <th scope="col" class="figure">Latest</th>
          </tr>
        </thead>
        <tbody>
          {worstFirst(job).map((rank) => (
            <Row key={rank.rank} rank={rank} figure={figure} usual={usual} named={job.verdict.ranks.includes(rank.rank)} />
          ))}
        </tbody>
      </table>
      {job.ranks.length > MAX_ROWS && <p class="muted footnote">{count(job.ranks.length - MAX_ROWS)} more ranks are like these.</p>}
      <p class="muted footnote">
        Darker is {figure.large ? "longer" : "slower"}; the middle is {figure.text(usual)}. Own host time is the step without the backward pass, in which ranks wait for each
        other, and without the wait for data.
      </p>
      {still.map((rank) => (
        <Stacks key={rank.rank} rank={rank} />
      ))}
    </section>
  );
}

function Row({ rank, figure, usual, named }: { rank: LiveRank; figure: Figure; usual: number; named: boolean }) {
  const values = (rank.history ?? []).map((row) => ({ at: row[0] ?? 0, value: row[figure.column] ?? 0 }));
  const latest = values.filter(({ value }) => value > 0).at(-1)?.value;
  const largest = Math.max(...values.map(({ value }) => value));
  return (
    <tr class={named ? "named" : undefined}>
      <th scope="row" class="figure">{rank.rank}</th>
      <td>{rank.state}</td>
      <td class="figure">{count(Math.max(rank.step, 0))}</td>
      <td>
        <div class="cells" role="img" aria-label={`From ${values.length} parts of the run, the largest is ${figure.text(largest)}`}>
          {values.map(({ at, value }) => (
            <span key={at} style={{ opacity: shade(value, usual, figure.large) }} title={`${timeOfDay(at * MS_PER_S)}: ${value > 0 ? figure.text(value) : "no step"}`} />
          ))}
        </div>
      </td>
      <td class="figure">{latest === undefined ? "" : figure.text(latest)}</td>
    </tr>
  );
}

/** All ranks in order; of very many, those with an alarm and the first ones. */
function worstFirst({ ranks, verdict }: LiveJob): readonly LiveRank[] {
  if (ranks.length <= MAX_ROWS) return ranks;
  const named = new Set(verdict.ranks);
  return [...ranks.filter(({ rank }) => named.has(rank)), ...ranks.filter(({ rank }) => !named.has(rank))].slice(0, MAX_ROWS).sort((a, b) => a.rank - b.rank);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function Stacks({ rank }: { rank: LiveRank }) {
  return (
    <details>
      <summary>
        Stacks of rank {rank.rank}, which does not move{rank.place && ` (${rank.place})`}
      </summary>
      {(rank.stacks ?? []).map(({ thread, frames }, index) => (
        <div key={index}>
          <h3>Thread {thread}</h3>
          <pre>{frames.join("\n")}</pre>
        </div>
      ))}
    </details>
  );
}
