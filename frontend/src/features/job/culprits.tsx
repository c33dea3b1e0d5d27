// What holds the job up: each cause with its cost, its gain, the fix and the evidence; and the gains side by side.
import type { Culprit, Job, RankTable, Speedup } from "../../shared/report";
import { between, share, times } from "../../shared/text/format";
import { CostAndGain, FindingCard } from "../../shared/widgets/finding_card";
import { StepBars, type StepBar } from "../../shared/widgets/step_bars";
import { isHidden, placeOf, regimeOfCause } from "./words";

interface Props {
  readonly job: Job;
  readonly table: RankTable;
  readonly openRank: (rank: number) => void;
}

const MAX_LINKS = 8;

export function Culprits({ job, table, openRank }: Props) {
  if (job.culprits.length === 0) return null;
  return (
    <section>
      <h2>What to change</h2>
      {job.culprits.map((culprit, index) => (
        <CulpritCard key={`${culprit.cause} ${index}`} culprit={culprit} hidden={isHidden(culprit, job.culprits.length)} table={table} openRank={openRank} />
      ))}
    </section>
  );
}

function CulpritCard({ culprit, hidden, table, openRank }: Omit<Props, "job"> & { culprit: Culprit; hidden: boolean }) {
  const { cause, title, ranks, cost_share, evidence, fix } = culprit;
  const linked = ranks.length < table.rank.length ? ranks.slice(0, MAX_LINKS) : [];
  return (
    <FindingCard
      cause={cause}
      title={fix?.action || title}
      subtitle={`${placeOf(culprit, table.rank.length)}: ${title}`}
      regime={regimeOfCause(cause)}
      aside={<CostAndGain cost={cost_share} of="of the job’s time" speedup={culprit.speedup} basis={hidden ? "alone; it gains once the other causes are fixed" : undefined} />}
      fix={fix}
      notes={<Assumption of={culprit.speedup} />}
      evidence={evidence}
    >
      {linked.length > 0 && (
        <p class="rank-links">
          <span class="muted">Diagnosis of </span>
          {linked.map((rank) => (
            <button key={rank} type="button" class="link" onClick={() => openRank(rank)}>
              rank {rank}
            </button>
          ))}
        </p>
      )}
    </FindingCard>
  );
}

function Assumption({ of: gain }: { of: Speedup | undefined }) {
  if (gain?.assumes) return <p class="muted footnote">The simulation assumes that {gain.assumes}.</p>;
  return gain?.because ? <p class="muted footnote">{gain.because}</p> : null;
}

/** The step time after each fix alone and after all of them. */
export function Gains({ job: { culprits, speedup_all, step_ns, replay } }: { job: Job }) {
  if (culprits.length === 0 || step_ns <= 0) return null;
  const bars = culprits.map((culprit) => barOf(culprit.fix?.action || culprit.title, isHidden(culprit, culprits.length) ? "gains once the other causes are fixed" : "this fix alone", step_ns, culprit.speedup));
  const simulated = culprits.filter(({ speedup }) => speedup?.basis !== "bound");
  const all = simulated.length > 1 ? barOf("All of these", "simulated together", step_ns, speedup_all) : [];
  return (
    <section>
      <h2>Expected gains</h2>
      <StepBars today="Today" ns={step_ns} bars={[...bars, all].flat()} />
      {replay && (
        <p class="muted footnote">
          All ranks are simulated together. Without any change, the simulated job differs by {share(replay.error)} from the recorded one.
        </p>
      )}
    </section>
  );
}

function barOf(name: string, note: string, step_ns: number, gain: Speedup | undefined): readonly StepBar[] {
  if (!gain) return [];
  const { basis, expected, low, high } = gain;
  return [{ name, note, ns: step_ns / expected, speedup: `${basis === "bound" ? "up to " : ""}${times(expected)}`, range: basis === "replay" ? between(low, high) : "" }];
}
