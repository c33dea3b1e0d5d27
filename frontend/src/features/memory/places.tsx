// Where the memory of the peak was allocated, as areas, as a table or as a tree.
import { useMemo, useState } from "preact/hooks";
import { memoryColourOf } from "../../shared/colours";
import type { Memory } from "../../shared/report";
import { bytes, count, share } from "../../shared/text/format";
import { SortableTable } from "../../shared/widgets/sortable_table";
import { Area } from "./area";
import { allSites, grouped, groupings, treeOf, type Group, type Grouping, type TreeNode } from "./place_groups";

type Display = Grouping | "area" | "tree";
const TITLES: Readonly<Record<Display, string>> = { area: "Areas", tree: "Tree", place: "Place", module: "Module", line: "Function and line", operator: "Operator", kind: "Category" };
/** Snapshots have the line of each call; traces only that of the function's def. */
const titleOf = (by: Display, source: string): string => (by === "line" && source === "snapshot" ? "Line" : TITLES[by]);
const CAPTION = "Where it was allocated";

export function Places({ memory }: { memory: Memory }) {
  const sites = useMemo(() => allSites(memory), [memory]);
  const titles = new Map(memory.parts.map(({ kind, title }) => [kind, title]));
  const available: readonly Display[] = [...groupings(sites), "area", "tree"];
  const [by, setBy] = useState<Display>(available[0] ?? "tree");
  return (
    <div class="memory-places">
      <div class="controls">
        <div class="buttons" role="group" aria-label="Show it by">
          {available.map((each) => (
            <button key={each} type="button" aria-pressed={each === by} onClick={() => setBy(each)}>
              {titleOf(each, memory.evidence_source)}
            </button>
          ))}
        </div>
      </div>
      {by === "tree" && <Tree root={treeOf(sites)} titles={titles} />}
      {by === "area" && <Area sites={sites} titles={titles} />}
      {by !== "tree" && by !== "area" && <GroupTable key={by} by={by} title={titleOf(by, memory.evidence_source)} rows={grouped(sites, by)} titles={titles} />}
    </div>
  );
}

function GroupTable({ by, title, rows, titles }: { by: Grouping; title: string; rows: readonly Group[]; titles: ReadonlyMap<string, string> }) {
  const total = rows.reduce((sum, row) => sum + row.bytes, 0) || 1;
  const kindTitle = (kind: string) => titles.get(kind) ?? kind;
  const kinds = (row: Group) => row.kinds.map(kindTitle).join(", ");
  const name = (row: Group) => (by === "kind" ? kindTitle(row.name) : row.name);
  const category = { key: "kinds", title: "Category", figure: false, value: kinds, cell: kinds };
  return (
    <SortableTable<Group>
      caption={CAPTION}
      rows={rows}
      initial={{ by: "bytes", descending: true }}
      searchText={name}
      columns={[
        { key: "name", title, figure: false, value: name, cell: (row) => <code class="long-name" title={name(row)}>{name(row)}</code> },
        { key: "bytes", title: "Bytes", figure: true, value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
        { key: "share", title: "Share", hint: "Share of the memory in tensors", figure: true, value: (row) => row.bytes / total, cell: (row) => share(row.bytes / total) },
        { key: "blocks", title: "Blocks", figure: true, value: (row) => row.blocks || undefined, cell: (row) => (row.blocks ? count(row.blocks) : "–") },
        ...(by === "kind" ? [] : [category]),
      ]}
    />
  );
}

const OPEN_LEVELS = 2;
const MIN_SHARE = 0.005; // smaller children are summed in one row
const MAX_LEVELS = 60;

function Tree({ root, titles }: { root: TreeNode; titles: ReadonlyMap<string, string> }) {
  return (
    <section class="memory-tree">
      <h2>{CAPTION}</h2>
      <ul>
        {root.children.map((node) => (
          <Branch key={node.name} node={node} whole={root.bytes} titles={titles} level={0} />
        ))}
      </ul>
    </section>
  );
}

interface BranchProps {
  readonly node: TreeNode;
  readonly whole: number;
  readonly titles: ReadonlyMap<string, string>;
  readonly level: number;
}

function Branch({ node, whole, titles, level }: BranchProps) {
  const shown = node.children.filter((child) => child.bytes >= MIN_SHARE * whole);
  const rest = node.children.length - shown.length;
  const restBytes = node.bytes - shown.reduce((sum, child) => sum + child.bytes, 0);
  const row = <Row node={node} whole={whole} titles={titles} />;
  if (node.children.length === 0 || level >= MAX_LEVELS) return <li class="leaf">{row}</li>;
  return (
    <li>
      <details open={level < OPEN_LEVELS}>
        <summary>{row}</summary>
        <ul>
          {shown.map((child) => (
            <Branch key={child.name} node={child} whole={whole} titles={titles} level={level + 1} />
          ))}
          {rest > 0 && (
            <li class="leaf muted">
              <span class="branch">
                <span class="name">{rest === 1 ? "one smaller" : `${count(rest)} smaller`}</span>
                <span class="figure">{bytes(restBytes)}</span>
              </span>
            </li>
          )}
        </ul>
      </details>
    </li>
  );
}

function Row({ node, whole, titles }: Omit<BranchProps, "level">) {
  const kinds = [...node.kinds].sort((a, b) => b[1] - a[1]);
  const description = kinds.map(([kind, size]) => `${titles.get(kind) ?? kind} ${bytes(size)}`).join(", ");
  return (
    <span class="branch" title={description}>
      <code class="name">{node.name}</code>
      <span class="bar" role="img" aria-label={description}>
        {kinds.map(([kind, size]) => (
          <span key={kind} style={{ width: `calc(100% * ${size / whole})`, backgroundColor: memoryColourOf(kind) }} />
        ))}
      </span>
      <span class="figure">{bytes(node.bytes)}</span>
      <span class="figure">{share(node.bytes / whole)}</span>
    </span>
  );
}
