// The table of the ranks, with a link to the diagnosis of each.
import { colourOf, isLost } from "../../shared/colours";
import type { Job, RankTable } from "../../shared/report";
import { count, duration, share, shortShare } from "../../shared/text/format";
import { sourceName } from "../../shared/text/names";
import { Icon } from "../../shared/widgets/icon";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { labelOf } from "./words";

interface Props {
  readonly job: Job;
  readonly table: RankTable;
  readonly chosen: string; // id of the recording that is shown
  readonly selected: readonly number[];
  readonly toggle: ((rank: number) => void) | undefined;
  readonly openRank: (rank: number) => void;
}

export function RankList(props: Props) {
  const { table } = props;
  const rows = table.rank.map((_, row) => row);
  return (
    <SortableTable
      caption="Ranks"
      rows={rows}
      columns={columnsOf(props)}
      initial={{ by: "rank", descending: false }}
      searchText={(row) => `rank ${table.rank[row]} ${hostText(table, row)} ${stageText(table, row)} ${labelOf(table.regime[row] ?? "")}`}
    />
  );
}

const hostText = ({ host }: RankTable, row: number): string => (host.length ? `host ${host[row]}` : "");
const stageText = ({ stage }: RankTable, row: number): string => (stage.length ? `stage ${stage[row]}` : "");

function columnsOf({ job, table, chosen, selected, toggle, openRank }: Props): readonly Column<number>[] {
  const named = new Map(job.culprits.filter(({ ranks }) => ranks.length < table.rank.length).flatMap(({ ranks, title }) => ranks.map((rank) => [rank, title] as const)));
  for (const { rank, behind_share } of job.stragglers) if (!named.has(rank)) named.set(rank, `The other ranks wait for it, ${shortShare(behind_share)} of each step`);
  const byShare = (key: string, title: string, hint: string, column: readonly number[]): Column<number>[] =>
    column.length === 0 ? [] : [{ key, title, hint, figure: true, value: (row) => column[row], cell: (row) => share(column[row]) }];
  const regimes = [...table.account].sort((a, b) => sum(b.share) - sum(a.share));
  return [
    {
      key: "rank",
      title: "Rank",
      figure: false,
      value: (row) => table.rank[row],
      cell: (row) => {
        const rank = table.rank[row]!;
        const gone = !table.id[row];
        return (
          <>
            <button type="button" class="link" disabled={gone} title={gone ? "Its recording is gone" : sourceName(table.source[row] ?? "")} aria-current={table.id[row] === chosen} onClick={() => openRank(rank)}>
              <span class="visually-hidden">Diagnosis of rank </span>
              {count(rank)}
            </button>
            <small>{[hostText(table, row), stageText(table, row)].filter(Boolean).join(", ")}</small>
            {named.has(rank) && (
              <span class="straggler tone-bad">
                <Icon name="warning" /> {named.get(rank)}
              </span>
            )}
          </>
        );
      },
    },
    ...(toggle
      ? [
          {
            key: "timeline",
            title: "Timeline",
            figure: false,
            value: (row: number) => (selected.includes(table.rank[row]!) ? 0 : 1),
            cell: (row: number) => (
              <input type="checkbox" aria-label={`Rank ${table.rank[row]} in the timeline`} checked={selected.includes(table.rank[row]!)} onChange={() => toggle(table.rank[row]!)} />
            ),
          },
        ]
      : []),
    { key: "step", title: "Step", figure: true, value: (row) => table.step_ns[row], cell: (row) => duration(table.step_ns[row] || undefined) },
    ...byShare("excess", "Beyond peers", "Own work beyond that of the ranks of the same stage, of the step", table.excess_share),
    ...byShare("wait", "Waiting", "For other ranks, of the step", table.wait_share),
    ...byShare("wire", "Transfers", "Of the step", table.wire_share),
    { key: "bar", title: "Where its time goes", figure: false, value: (row) => labelOf(table.regime[row] ?? ""), cell: (row) => <Bar table={table} row={row} /> },
    ...regimes.map(({ regime, share: column }) => ({
      key: `share ${regime}`,
      title: labelOf(regime),
      figure: true,
      value: (row: number) => column[row],
      cell: (row: number) => share(column[row]),
    })),
  ];
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function Bar({ table, row }: { table: RankTable; row: number }) {
  const description = table.account.map(({ regime, share: column }) => `${labelOf(regime)} ${shortShare(column[row])}`).join(", ");
  return (
    <span class="small-bar" role="img" aria-label={description} title={description}>
      {table.account.map(({ regime, share: column }) => (
        <span key={regime} class={isLost(regime) ? "hatched" : undefined} style={{ flexGrow: column[row] ?? 0, backgroundColor: colourOf(regime) }} />
      ))}
    </span>
  );
}
