// The ranks of a job: the account of each rank, and which one the others wait for.
import { colourOf, isLost } from "../../shared/colours";
import { addStyle } from "../../shared/page/style_sheet";
import type { AccountRow, Job as JobMessage, RankRow, RanksAnswer, Speedup } from "../../shared/report";
import type { Key } from "../../shared/run/keys";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import viewStyle from "../../shared/style/view.css";
import { count, duration, share, shortShare, speedup } from "../../shared/text/format";
import { sourceName } from "../../shared/text/names";
import { Icon } from "../../shared/widgets/icon";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import sheet from "./ranks.css";

addStyle(viewStyle);
addStyle(sheet);

interface Props extends ViewProps {
  readonly choose: (key: Key) => void;
}

export function RanksView({ client, entry, report, choose }: Props) {
  return (
    <Request subject={`${entry.id} ranks`} version={report} waiting="Loading the other ranks…" send={(signal, onProgress) => poll(() => client.ranks(entry.id, signal), signal, onProgress)}>
      {(answer) =>
        answer.job && answer.ranks.length > 1 ? (
          <Job answer={answer} chosen={entry.id} run={entry.run} choose={choose} />
        ) : (
          <p>
            This is rank {count(report.rank ?? 0)} of {count(report.world_size ?? 1)}, and no other rank of this run has a verdict.
            Let every rank write its trace into the same directory to see which rank the others wait for.
          </p>
        )
      }
    </Request>
  );
}

function Job({ answer: { job, ranks }, chosen, run, choose }: { answer: RanksAnswer; chosen: string; run: string; choose: (key: Key) => void }) {
  const regimes = (job?.account ?? []).filter((row) => row.share > 0).sort((a, b) => b.share - a.share);
  return (
    <section class="ranks">
      <h2>The job</h2>
      <p class="job-headline">{job?.verdict?.headline}</p>
      {job?.speedup && <NoStragglers speedup={job.speedup} />}
      <SortableTable caption={`${count(ranks.length)} ranks`} rows={ranks} columns={columnsOf(job, chosen, run, regimes, choose)} initial={{ by: "rank", descending: false }} />
    </section>
  );
}

/** The gain if no rank were slower than the others. */
function NoStragglers({ speedup: gain }: { speedup: Speedup }) {
  if (gain.basis === "none") return gain.because ? <p class="muted footnote">{gain.because}</p> : null;
  const { gain: factor, basis } = speedup(gain);
  return (
    <div class="no-stragglers">
      <p>
        Without stragglers, the job would be <b>{factor}</b> as fast <span class="muted">({basis})</span>.
      </p>
      {gain.assumes && <p class="muted footnote">This assumes that {gain.assumes}.</p>}
    </div>
  );
}

const shareOf = (row: RankRow, regime: string): number => row.account.find((each) => each.regime === regime)?.share ?? 0;

/** ", 53 % of each step": how much less than the median rank it waits. */
function delayOf(job: JobMessage | undefined, { rank }: RankRow): string {
  const straggler = job?.stragglers.find((each) => each.rank === rank);
  return straggler ? `, ${shortShare(straggler.behind_share)} of each step` : "";
}

function columnsOf(job: JobMessage | undefined, chosen: string, run: string, regimes: readonly AccountRow[], choose: (key: Key) => void): readonly Column<RankRow>[] {
  return [
    {
      key: "rank",
      title: "Rank",
      figure: false,
      value: ({ rank }) => rank,
      cell: (row) => (
        <>
          <button type="button" class="link" title={sourceName(row.source)} aria-current={row.id === chosen} onClick={() => choose(`${run}/${row.source}`)}>
            <span class="visually-hidden">Rank </span>
            {count(row.rank)}
          </button>
          {row.is_straggler && (
            <span class="straggler tone-bad">
              <Icon name="warning" /> the other ranks wait for it{delayOf(job, row)}
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
  const description = regimes.map(({ regime, title }) => `${title} ${shortShare(shareOf(row, regime))}`).join(", ");
  return (
    <span class="small-bar" role="img" aria-label={description} title={description}>
      {regimes.map(({ regime }) => (
        <span key={regime} class={isLost(regime) ? "hatched" : undefined} style={{ flexGrow: shareOf(row, regime), backgroundColor: colourOf(regime) }} />
      ))}
    </span>
  );
}
