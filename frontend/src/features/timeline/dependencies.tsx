// What the selected operation of a device comes from, and what it waited for.
import type { Dependencies, RunEntry, TimelineRow } from "../../shared/report";
import type { Span } from "../../shared/run/viewport";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { bytes, count, duration, shortShare } from "../../shared/text/format";
import { kernelName } from "../../shared/text/names";
import { Request } from "../../shared/widgets/request";
import type { Block } from "./hit";

interface Props {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly block: Block;
  readonly show: (row: Span) => void;
}

export function BlockDependencies({ client, entry, block, show }: Props) {
  const { track, begin, count: merged } = block;
  if (track.group !== "device" || merged > 1) return null;
  return (
    <Request
      subject={`${entry.id} ${track.track} ${begin}`}
      version={entry.id}
      waiting="Looking for what it waited for…"
      send={(signal, onProgress) => poll(() => client.dependencies(entry.id, begin, track.track, signal), signal, onProgress)}
    >
      {({ dependencies }) => (dependencies ? <Facts dependencies={dependencies} show={show} /> : null)}
    </Request>
  );
}

const WAITED_FOR: Readonly<Record<string, string>> = {
  launch: "Its launch: the device had nothing to do",
  stream: "The operation before it on its stream",
  other_stream: "An operation on another stream",
  unknown: "Not recorded",
};

function Facts({ dependencies, show }: { readonly dependencies: Dependencies; readonly show: Props["show"] }) {
  const { waited_for, waited_ns, awaited, launch, operators, modules, lines, ranges, blocks, occupancy, followers } = dependencies;
  const places = [
    ["Operators", operators],
    ["Modules", modules],
    ["Functions (lines of their def)", lines],
    ["Ranges", ranges],
  ] as const;
  return (
    <dl class="dependencies">
      <div>
        <dt>Waited for</dt>
        <dd>
          {WAITED_FOR[waited_for] ?? waited_for}
          {awaited && waited_for !== "launch" && <RowLink row={awaited} show={show} />}
          {awaited && <span class="muted"> {duration(Math.max(waited_ns, 0))} before it</span>}
        </dd>
      </div>
      {launch && (
        <div>
          <dt>Launched by</dt>
          <dd>
            <RowLink row={launch} show={show} />
          </dd>
        </div>
      )}
      {places.map(([title, names]) => names.length > 0 && (
        <div key={title}>
          <dt>{title}</dt>
          <dd>
            <code>{names.join(" › ")}</code>
          </dd>
        </div>
      ))}
      {followers.length > 0 && (
        <div>
          <dt>Waiting for it</dt>
          <dd>{followers.map((row) => <RowLink key={row.begin_ns} row={row} show={show} />)}</dd>
        </div>
      )}
      {(blocks > 0 || occupancy !== undefined || dependencies.bytes > 0) && (
        <div>
          <dt>Size</dt>
          <dd>
            {[blocks > 0 && `${count(blocks)} blocks`, occupancy !== undefined && `occupancy ${shortShare(occupancy)}`, dependencies.bytes > 0 && bytes(dependencies.bytes)].filter(Boolean).join(", ")}
          </dd>
        </div>
      )}
    </dl>
  );
}

function RowLink({ row, show }: { readonly row: TimelineRow; readonly show: Props["show"] }) {
  return (
    <button type="button" class="link long-name" title={row.name} onClick={() => show({ begin: row.begin_ns, end: Math.max(row.end_ns, row.begin_ns + 1) })}>
      {kernelName(row.name)}
    </button>
  );
}
