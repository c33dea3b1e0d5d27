// The job of a recording: all ranks, what holds them up, and what to change first.
import { useMemo, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { Job, JobAnswer, RankTable, RunEntry } from "../../shared/report";
import { keyOf, type Key } from "../../shared/run/keys";
import type { ViewProps } from "../../shared/run/view_props";
import type { View } from "../../shared/run/views";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { count, duration, epochMs, moment, share, speedup } from "../../shared/text/format";
import { knownFigures, unknownText } from "../../shared/text/efficiency";
import { leadOf } from "../../shared/text/names";
import { CodeBlock } from "../../shared/widgets/code_block";
import { Fact } from "../../shared/widgets/fact";
import { Health } from "../../shared/widgets/health";
import { Request } from "../../shared/widgets/request";
import { Culprits, Gains } from "./culprits";
import { HeatMap } from "./heat_map";
import sheet from "./job.css";
import { Pipeline } from "./pipeline";
import { ProcessGroups } from "./process_groups";
import { RankList } from "./rank_list";
import { RankTimeline } from "./rank_timeline";
import { firstSelection } from "./step_bars";
import { ranksText } from "./words";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

interface Props extends ViewProps {
  readonly runs: readonly RunEntry[];
  readonly choose: (key: Key, view: View) => void;
}

export function JobView({ client, entry, report, runs, choose }: Props) {
  return (
    <Request subject={`${entry.id} job`} version={report} waiting="Reading the job…" send={(signal, onProgress) => poll(() => client.job(entry.id, false, signal), signal, onProgress)}>
      {(answer) =>
        answer.job && answer.ranks ? (
          <Content answer={answer} job={answer.job} table={answer.ranks} entry={entry} runs={runs} choose={choose} />
        ) : (
          <NoJob answer={answer} rank={report.rank} world={report.world_size} />
        )
      }
    </Request>
  );
}

function NoJob({ answer, rank, world }: { answer: JobAnswer; rank: number | undefined; world: number | undefined }) {
  return (
    <section>
      <h2>The other ranks are missing</h2>
      <p class="measure">
        {rank === undefined ? "This recording is one" : `This is rank ${count(rank)}`} of {count(world ?? 1)} ranks. {answer.because} Let every rank write its trace into
        the same directory, in the same steps.
      </p>
      <SaveCommand answer={answer} because="" />
    </section>
  );
}

interface ContentProps {
  readonly answer: JobAnswer;
  readonly job: Job;
  readonly table: RankTable;
  readonly entry: RunEntry;
  readonly runs: readonly RunEntry[];
  readonly choose: (key: Key, view: View) => void;
}

function Content({ answer, job, table, entry, runs, choose }: ContentProps) {
  const initial = useMemo(() => firstSelection(table, namedRanks(job, table)), [job, table]);
  const [selection, select] = useState<readonly number[]>();
  const selected = answer.steps ? (selection ?? initial) : [];
  const change = (rank: number) => select(selected.includes(rank) ? selected.filter((each) => each !== rank) : [...selected, rank].sort((a, b) => a - b));
  const toggle = answer.steps && change;
  const openRank = (rank: number) => {
    const source = table.source[table.rank.indexOf(rank)];
    if (source !== undefined) choose(keyOf({ run: entry.run, source }), "diagnosis");
  };
  return (
    <>
      <Speaker answer={answer} table={table} runs={runs} openRank={openRank} />
      <Facts answer={answer} job={job} />
      {answer.basis === "accounts" && <SaveCommand answer={answer} because={answer.because} />}
      {job.health && <Health health={job.health} />}
      {job.efficiency && <p class="muted footnote">{unknownText(job.efficiency)}</p>}
      <HeatMap job={job} table={table} selected={selected} toggle={toggle} openRank={openRank} />
      <Pipeline pipeline={answer.pipeline} table={table} openRank={openRank} />
      <Culprits job={job} table={table} openRank={openRank} />
      <ByAccounts job={job} />
      <Gains job={job} />
      <RankTimeline table={table} steps={answer.steps} selected={selected} toggle={change} openRank={openRank} />
      <ProcessGroups job={job} />
      <RankList job={job} table={table} chosen={entry.id} selected={selected} toggle={toggle} openRank={openRank} />
    </>
  );
}

/** One rank of each cause that is not about all ranks; without causes, the stragglers. */
function namedRanks({ culprits, stragglers }: Job, table: RankTable): readonly number[] {
  const lists = culprits.map(({ ranks }) => ranks).filter((ranks) => ranks.length < table.rank.length);
  return [...new Set([...lists.flatMap((ranks) => ranks.slice(0, 1)), ...(lists.length > 0 ? [] : stragglers.map(({ rank }) => rank))])];
}

/** What the rank says that explains the verdict of the job. */
function Speaker({ answer: { speaker, job }, table, runs, openRank }: { answer: JobAnswer; table: RankTable; runs: readonly RunEntry[]; openRank: (rank: number) => void }) {
  const id = speaker === undefined ? undefined : table.id[table.rank.indexOf(speaker)];
  const verdict = runs.find((each) => each.id === id)?.verdict;
  if (speaker === undefined || !verdict) return null;
  return (
    <p class="measure speaker">
      {job?.culprits.length || job?.stragglers.length ? "On" : "All ranks are alike. On"}{" "}
      <button type="button" class="link" onClick={() => openRank(speaker)}>
        rank {count(speaker)}
      </button>
      : {leadOf(verdict) || verdict.title}
    </p>
  );
}

const LEAST_CLOCK_ERROR = 1_000; // ns: times in a trace are not more exact

function Facts({ answer, job }: { answer: JobAnswer; job: Job }) {
  const { missing_ranks: missing, hosts, clock_error_ns: clock, replay } = job;
  return (
    <dl class="facts">
      <Fact name="Ranks" value={count(job.world_size)} note={missing.length > 0 ? `${count(missing.length)} missing: ${ranksText(missing)}` : "all recorded"} />
      {job.step_ns > 0 && <Fact name="Step" value={duration(job.step_ns)} note="median of all ranks" />}
      {hosts.length > 0 && <Fact name="Hosts" value={count(hosts.length)} note={hosts.length > 1 ? (clock === undefined ? "clocks are not aligned" : `clocks aligned to ${clock < LEAST_CLOCK_ERROR ? "less than 1 µs" : duration(clock)}`) : ""} />}
      {replay && <Fact name="Error of the simulation" value={share(replay.error)} note="without any change" />}
      {job.efficiency && knownFigures(job.efficiency).map(({ note, value }) => <Fact key={note.field} name={note.title} value={value ?? ""} note={note.basis} />)}
      <Fact name="Source" value={SOURCES.get(answer.basis) ?? answer.basis} note={sourceNote(answer)} />
    </dl>
  );
}

const SOURCES: ReadonlyMap<string, string> = new Map([
  ["saved", "Saved report"],
  ["computed", "Traces of all ranks"],
  ["accounts", "Accounts of the ranks"],
]);

function sourceNote({ basis, saved_ns, other_version }: JobAnswer): string {
  if (basis !== "saved") return basis === "accounts" ? "collectives are not paired" : "";
  return `${moment(epochMs(saved_ns))}${other_version ? ", by another version of tb_bottleneck" : ""}`;
}

/** The command that makes the report of the job. */
function SaveCommand({ answer: { command }, because }: { answer: JobAnswer; because: string }) {
  if (!command) return null;
  return (
    <section class="notice save-command">
      <p>{because} To see which rank, host, link or stage holds the job up, with gains, save the report of the job:</p>
      <CodeBlock text={command} label="command that saves the report of the job" />
      <p class="muted footnote">The page shows it within seconds of the end of the command. For many ranks, add --workers N or --scheduler ADDRESS to use a Dask cluster.</p>
    </section>
  );
}

/** What the accounts of the ranks say of a job without paired collectives. */
function ByAccounts({ job: { speedup: gain, culprits, stragglers, verdict, replay } }: { job: Job }) {
  if (culprits.length > 0 || replay) return null;
  if (!gain || stragglers.length === 0) return <p>No rank waits much less than the others, so none is a clear straggler.</p>;
  return (
    <section class="by-accounts">
      <h2>By the time in collectives alone</h2>
      <p class="measure">{verdict?.headline}</p>
      <p class="muted footnote">The stages of a pipeline differ by design: such ranks are no stragglers.</p>
      {gain.basis === "none" ? (
        gain.because && <p class="muted">{gain.because}</p>
      ) : (
        <p>
          The job would be <b>{speedup(gain).gain}</b> as fast <span class="muted">({speedup(gain).basis})</span>.
        </p>
      )}
      {gain.assumes && <p class="muted footnote">This assumes that {gain.assumes}.</p>}
    </section>
  );
}
