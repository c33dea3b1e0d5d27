// The ranks of a job side by side: who waits for whom, and each rank's own account.
import { colourOf, isLost } from "../../shared/colours";
import { count, duration, share, shortShare, speedup } from "../../shared/text/format";
import { sourceName } from "../../shared/text/names";
import type { AccountRow, Job as JobMessage, RankRow, RanksAnswer, Speedup } from "../../shared/report";
import { addStyle } from "../../shared/page/style_sheet";
import { settled } from "../../shared/server/polling";
import type { Key } from "../../app/state";
import sheet from "../../shared/style/view.css";
import { Awaited } from "../../shared/widgets/request";
import type { EvidenceProps } from "../../shared/run/view_props";
import { Icon } from "../../shared/widgets/icon";
import { Sortable, type Column } from "../../shared/widgets/sortable_table";

addStyle(sheet);

interface Props extends EvidenceProps {
  readonly choose: (key: Key) => void;
}

export function RanksView({ client, entry, report, choose }: Props) {
  return (
    <Awaited about={`${entry.id} ranks`}
      since={report} waiting="Asking for the other ranks…" ask={(signal, tell) => settled(() => client.ranks(entry.id, signal), signal, tell)}>
      {(answer) =>
        answer.job && answer.ranks.length > 1 ? (
          <Job answer={answer} mine={entry.id} run={entry.run} choose={choose} />
        ) : (
          <p>
            This is rank {count(report.rank ?? 0)} of {count(report.world_size ?? 1)}, and no other rank of this run has been judged.
            Let every rank write its trace into the same directory to see which one the others wait for.
          </p>
        )
      }
    </Awaited>
  );
}

function Job({ answer: { job, ranks }, mine, run, choose }: { answer: RanksAnswer; mine: string; run: string; choose: (key: Key) => void }) {
  const regimes = (job?.account ?? []).filter((row) => row.share > 0).sort((a, b) => b.share - a.share);
  return (
    <section class="ranks">
      <h2>The job</h2>
      <p class="job-headline">{job?.verdict?.headline}</p>
      {job?.speedup && <WithoutStragglers speedup={job.speedup} />}
      <Sortable caption={`${count(ranks.length)} ranks`} rows={ranks} columns={columnsOf(job, mine, run, regimes, choose)} first={{ by: "rank", down: false }} />
    </section>
  );
}

/** What the job would gain, were no rank slower than its fellows. */
function WithoutStragglers({ speedup: gain }: { speedup: Speedup }) {
  if (gain.basis === "none") return gain.because ? <p class="muted footnote">{gain.because}</p> : null;
  const { gain: factor, basis } = speedup(gain);
  return (
    <div class="without">
      <p>
        Were no rank a straggler, the job would be <b>{factor}</b> as fast <span class="muted">({basis})</span>.
      </p>
      {gain.assumes && <p class="muted footnote">This takes it that {gain.assumes}.</p>}
    </div>
  );
}

const shareOf = (row: RankRow, regime: string): number => row.account.find((one) => one.regime === regime)?.share ?? 0;

/** ", 53 % of each step": by how much less than the median rank it waits. */
function behind(job: JobMessage | undefined, { rank }: RankRow): string {
  const straggler = job?.stragglers.find((one) => one.rank === rank);
  return straggler ? `, ${shortShare(straggler.behind_share)} of each step` : "";
}

function columnsOf(job: JobMessage | undefined, mine: string, run: string, regimes: readonly AccountRow[], choose: (key: Key) => void): readonly Column<RankRow>[] {
  return [
    {
      key: "rank",
      title: "Rank",
      figure: false,
      value: ({ rank }) => rank,
      cell: (row) => (
        <>
          <button type="button" class="link" title={sourceName(row.source)} aria-current={row.id === mine} onClick={() => choose(`${run}/${row.source}`)}>
            <span class="spoken">Rank </span>
            {count(row.rank)}
          </button>
          {row.is_straggler && (
            <span class="straggler tone-bad">
              <Icon name="warning" /> the others wait for it{behind(job, row)}
            </span>
          )}
        </>
      ),
    },
    { key: "step", title: "Step", figure: true, value: ({ step_ns }) => step_ns, cell: ({ step_ns }) => duration(step_ns) },
    { key: "bar", title: "Where its time goes", figure: false, value: (row) => row.verdict?.title, cell: (row) => <Bar row={row} regimes={regimes} /> },
    ...regimes.map(({ regime, title }) => ({
      key: regime,
      title,
      figure: true,
      value: (row: RankRow) => shareOf(row, regime),
      cell: (row: RankRow) => share(shareOf(row, regime)),
    })),
  ];
}

function Bar({ row, regimes }: { row: RankRow; regimes: readonly AccountRow[] }) {
  const spoken = regimes.map(({ regime, title }) => `${title} ${shortShare(shareOf(row, regime))}`).join(", ");
  return (
    <span class="small-bar" role="img" aria-label={spoken} title={spoken}>
      {regimes.map(({ regime }) => (
        <span key={regime} class={isLost(regime) ? "hatched" : undefined} style={{ flexGrow: shareOf(row, regime), backgroundColor: colourOf(regime) }} />
      ))}
    </span>
  );
}
