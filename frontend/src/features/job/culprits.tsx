// What holds the job up: each cause with its cost, its gain, the fix and the evidence; and the gains side by side.
import { colourOf } from "../../shared/colours";
import type { Culprit, Job, RankTable, Speedup } from "../../shared/report";
import { between, duration, evidence as valueOf, share, shortShare, speedup, times } from "../../shared/text/format";
import { CodeBlock } from "../../shared/widgets/code_block";
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
  const { gain, basis } = speedup(culprit.speedup);
  const linked = ranks.length < table.rank.length ? ranks.slice(0, MAX_LINKS) : [];
  return (
    <section class="card finding" data-cause={cause} style={{ borderInlineStartColor: colourOf(regimeOfCause(cause)) }}>
      <header>
        <h3>
          {fix?.action || title}
          <small class="where">
            {placeOf(culprit, table.rank.length)}: {title}
          </small>
        </h3>
        <dl class="cost-and-gain">
          <div>
            <dt>Costs</dt>
            <dd>
              {share(cost_share)} <small>of the job’s time</small>
            </dd>
          </div>
          <div>
            <dt>Speedup</dt>
            <dd>
              {gain} <small>{hidden ? "alone; it gains once the other causes are fixed" : basis}</small>
            </dd>
          </div>
        </dl>
      </header>
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
      {evidence.length > 0 && (
        <table class="evidence" aria-label="Evidence">
          <thead>
            <tr>
              <th scope="col">Evidence</th>
              <th scope="col" class="figure">Measured</th>
            </tr>
          </thead>
          <tbody>
            {evidence.map((item, index) => (
              <tr key={index}>
                <th scope="row">{item.label}</th>
                <td class="figure">{valueOf(item)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
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
      <Assumption of={culprit.speedup} />
    </section>
  );
}

function Assumption({ of: gain }: { of: Speedup | undefined }) {
  if (gain?.assumes) return <p class="muted footnote">The simulation assumes that {gain.assumes}.</p>;
  return gain?.because ? <p class="muted footnote">{gain.because}</p> : null;
}

/** The step time after each fix alone and after all of them. */
export function Gains({ job: { culprits, speedup_all, step_ns, replay } }: { job: Job }) {
  if (culprits.length === 0 || step_ns <= 0) return null;
  const rows = culprits.map((culprit) => ({ name: culprit.fix?.action || culprit.title, note: isHidden(culprit, culprits.length) ? "gains once the other causes are fixed" : "this fix alone", gain: culprit.speedup }));
  const all = culprits.length > 1 ? [{ name: "All of these", note: "simulated together", gain: speedup_all }] : [];
  return (
    <section>
      <h2>Expected gains</h2>
      <ol class="plan">
        <li class="today">
          <span class="change">Today</span>
          <Length share={1} />
          <span class="figure">{duration(step_ns)}</span>
          <span class="figure" />
        </li>
        {[...rows, ...all].map(({ name, note, gain }, index) => gain && (
          <li key={index}>
            <span class="change">
              <span>
                {name}
                <small>{note}</small>
              </span>
            </span>
            <Length share={1 / gain.expected} />
            <span class="figure" title="Step time after this change">
              {duration(step_ns / gain.expected)}
            </span>
            <span class="figure" title="Speedup">
              <b>
                {gain.basis === "bound" && "up to "}
                {times(gain.expected)}
              </b>
              <small>{gain.basis === "replay" && between(gain.low, gain.high)}</small>
            </span>
          </li>
        ))}
      </ol>
      {replay && (
        <p class="muted footnote">
          All ranks are simulated together. Without any change, the simulated job differs by {share(replay.error)} from the recorded one.
        </p>
      )}
    </section>
  );
}

function Length({ share: part }: { share: number }) {
  const shown = Math.min(Math.max(part, 0), 1);
  return (
    <span class="length" role="img" aria-label={`${shortShare(shown)} of today’s step time`}>
      <span class="left" style={{ flexGrow: shown }} />
      <span style={{ flexGrow: 1 - shown }} />
    </span>
  );
}
