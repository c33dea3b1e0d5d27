// The process groups of the job, by operation: waiting for other ranks apart from the transfer, and the bus bandwidth.
import { colourOf } from "../../shared/colours";
import type { Group, Job, Transfer } from "../../shared/report";
import { bytes, count, rate, share, shortShare } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";
import { kindOf } from "./words";

interface Row {
  readonly group: Group;
  readonly size: number;
  readonly transfer: Transfer;
}

export function ProcessGroups({ job }: { job: Job }) {
  const rows = job.groups.flatMap((group) => group.transfers.map((transfer) => ({ group, size: group.ranks.length || job.world_size, transfer })));
  if (rows.length === 0) return null;
  const longest = Math.max(...rows.map(({ transfer }) => transfer.wait_share + transfer.wire_share), Number.MIN_VALUE);
  return (
    <SortableTable
      caption="Process groups"
      rows={rows}
      columns={columnsOf(longest)}
      initial={{ by: "wait", descending: true }}
      note={<span class="muted">Waiting for the last rank is not the network’s time; transfer is. Shares are of the step, the mean over the ranks, without what compute hides.</span>}
    />
  );
}

const BYTES_PER_GB = 1_000_000_000;

const columnsOf = (longest: number): readonly Column<Row>[] => [
  {
    key: "group",
    title: "Groups",
    figure: false,
    value: ({ group }) => kindOf(group.kind),
    cell: ({ group, size }) => (
      <>
        {kindOf(group.kind)}
        <small>
          {count(group.count)} of {count(size)} ranks{group.name && <span class="long-name">{group.name}</span>}
        </small>
      </>
    ),
  },
  { key: "operation", title: "Operation", figure: false, value: ({ transfer }) => transfer.operation, cell: ({ transfer }) => title(transfer.operation) },
  { key: "bar", title: "Waiting and transfer", figure: false, value: ({ transfer }) => transfer.wait_share + transfer.wire_share, cell: ({ transfer }) => <WaitBar transfer={transfer} longest={longest} /> },
  { key: "wait", title: "Waiting", hint: "For the last rank to arrive", figure: true, value: ({ transfer }) => transfer.wait_share, cell: ({ transfer }) => share(transfer.wait_share) },
  { key: "wire", title: "Transfer", figure: true, value: ({ transfer }) => transfer.wire_share, cell: ({ transfer }) => share(transfer.wire_share) },
  {
    key: "bus",
    title: "Bus bandwidth",
    hint: "Of large messages, as nccl-tests defines it",
    figure: true,
    value: ({ transfer }) => transfer.bus_gbps || undefined,
    cell: ({ transfer }) => (transfer.bus_gbps ? rate(transfer.bus_gbps * BYTES_PER_GB) : "–"),
  },
  { key: "size", title: "Message", figure: true, value: ({ transfer }) => transfer.bytes || undefined, cell: ({ transfer }) => (transfer.bytes ? bytes(transfer.bytes) : "–") },
  { key: "calls", title: "Calls per step", figure: true, value: ({ transfer }) => transfer.calls, cell: ({ transfer }) => count(transfer.calls) },
];

function WaitBar({ transfer: { wait_share, wire_share }, longest }: { transfer: Transfer; longest: number }) {
  const colour = colourOf("communication");
  const text = `waiting ${shortShare(wait_share)}, transfer ${shortShare(wire_share)}`;
  return (
    <span class="small-bar" role="img" aria-label={text} title={text}>
      <span class="hatched" style={{ flexGrow: wait_share / longest, backgroundColor: colour }} />
      <span style={{ flexGrow: wire_share / longest, backgroundColor: colour }} />
      <span style={{ flexGrow: Math.max(1 - (wait_share + wire_share) / longest, 0) }} />
    </span>
  );
}
