// The nodes of a breakdown: values, order, search, and what is open at first.
import type { Tree } from "../../shared/report";
import type { Metric } from "./options";

export type Node = number; // a row of the message's columns; 0 is the root
export const ROOT: Node = 0;

export interface Share {
  readonly regime: string;
  readonly title: string;
  readonly ns: number;
}

const FIRST_ROWS = 30;
const MIN_SHARE_TO_OPEN = 0.03; // of the whole

/** One recording, or two on the same nodes. All values are per step if the steps are known. */
export class Model {
  readonly size: number;
  private readonly below: readonly (readonly Node[])[];
  readonly level: readonly number[];

  constructor(
    readonly tree: Tree,
    readonly other?: Tree,
  ) {
    this.size = tree.parent.length;
    const below: Node[][] = tree.parent.map(() => []);
    const level = [0];
    for (let node = 1; node < this.size; node++) {
      below[tree.parent[node]!]!.push(node);
      level.push(level[tree.parent[node]!]! + 1);
    }
    this.below = below;
    this.level = level;
  }

  name(node: Node): string {
    return node === ROOT ? "All" : this.tree.name[node]!;
  }

  kind(node: Node): string {
    return this.tree.kinds[this.tree.kind[node]!]!;
  }

  hasChildren(node: Node): boolean {
    return this.below[node]!.length > 0;
  }

  /** The children, the largest first; the node that stands for others comes last. */
  children(node: Node, metric: Metric): readonly Node[] {
    const isRest = (child: Node) => Number(this.kind(child) === "rest");
    return [...this.below[node]!].sort((a, b) => isRest(a) - isRest(b) || this.rank(b, metric) - this.rank(a, metric));
  }

  /** What nodes are ordered by: a value, or its change. */
  rank(node: Node, metric: Metric): number {
    return this.other ? Math.abs(this.change(node, metric)) : this.value(node, metric);
  }

  value(node: Node, metric: Metric): number {
    return valueOf(this.tree, node, metric);
  }

  before(node: Node, metric: Metric): number {
    return this.other ? valueOf(this.other, node, metric) : 0;
  }

  change(node: Node, metric: Metric): number {
    return this.value(node, metric) - this.before(node, metric);
  }

  /** The part of a value that no child has. */
  own(node: Node, metric: Metric): number {
    return this.below[node]!.reduce((rest, child) => rest - this.value(child, metric), this.value(node, metric));
  }

  /** The part of the whole, 0 to 1. */
  share(node: Node, metric: Metric): number {
    const whole = this.value(ROOT, metric);
    return whole > 0 ? this.value(node, metric) / whole : 0;
  }

  calls(node: Node): number {
    return this.tree.calls[node]! / steps(this.tree);
  }

  /** The node's time by regime, the largest first. */
  regimes(node: Node): readonly Share[] {
    const of = ({ regime, title, ns }: Tree["regimes"][number]) => ({ regime, title, ns: ns[node]! / steps(this.tree) });
    return this.tree.regimes.map(of).filter(({ ns }) => ns > 0).sort((a, b) => b.ns - a.ns);
  }

  /** The longest row of the node on the timeline. */
  longest(node: Node): { readonly begin: number; readonly end: number } | undefined {
    const [begin, end] = [this.tree.begin_ns[node]!, this.tree.end_ns[node]!];
    return end > begin ? { begin, end } : undefined;
  }

  /** The nodes above, outermost first, without the root. */
  above(node: Node): readonly Node[] {
    const path: Node[] = [];
    for (let at = this.tree.parent[node]!; at > ROOT; at = this.tree.parent[at]!) path.unshift(at);
    return path;
  }

  parent(node: Node): Node {
    return this.tree.parent[node]!;
  }
}

const steps = ({ steps: count }: Tree): number => Math.max(count, 1);

function valueOf(tree: Tree, node: Node, metric: Metric): number {
  return columnOf(tree, node, metric) / steps(tree);
}

function columnOf(tree: Tree, node: Node, metric: Metric): number {
  switch (metric) {
    case "time":
      return tree.regimes.reduce((sum, { ns }) => sum + ns[node]!, 0);
    case "device":
      return tree.device_ns[node]!;
    case "host":
      return tree.host_ns[node]!;
    case "wait":
      return tree.wait_ns[node]!;
    case "bytes":
      return tree.moved_bytes[node]!;
    case "flops":
      return tree.flops[node]!;
    case "memory":
      return tree.allocated_bytes[node]!;
  }
}

/** The nodes that are open at first: the large ones, as long as the rows fit on a screen. */
export function openAtFirst(model: Model, metric: Metric): ReadonlySet<Node> {
  const open = new Set<Node>([ROOT]);
  let rows = 1 + model.children(ROOT, metric).length;
  const whole = model.rank(ROOT, metric) || Math.max(...model.children(ROOT, metric).map((node) => model.rank(node, metric)), 1);
  const waiting = [...model.children(ROOT, metric)];
  while (waiting.length > 0) {
    waiting.sort((a, b) => model.rank(b, metric) - model.rank(a, metric));
    const node = waiting.shift()!;
    const children = model.children(node, metric);
    // Small children say nothing about a large node.
    if (!children.some((child) => model.rank(child, metric) >= MIN_SHARE_TO_OPEN * whole)) continue;
    // A chain of single children is opened as a whole: each of its rows says the same.
    if (rows + children.length > FIRST_ROWS && children.length > 1) continue;
    open.add(node);
    rows += children.length;
    waiting.push(...children);
  }
  return open;
}

export interface Found {
  readonly nodes: ReadonlySet<Node>; // that match
  readonly shown: ReadonlySet<Node>; // these, all above and all below
  readonly open: ReadonlySet<Node>; // all above a match
  readonly outermost: readonly Node[];
}

/** The nodes whose names contain a text, in any case. */
export function search(model: Model, text: string): Found | undefined {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return undefined;
  const [nodes, shown, open, inside, outermost] = [new Set<Node>(), new Set<Node>([ROOT]), new Set<Node>([ROOT]), new Set<Node>(), [] as Node[]];
  for (let node = 1; node < model.size; node++) {
    const matches = model.kind(node) !== "rest" && model.name(node).toLowerCase().includes(wanted);
    const below = inside.has(model.parent(node));
    if (matches) nodes.add(node);
    if (matches && !below) outermost.push(node);
    if (!matches && !below) continue;
    inside.add(node);
    shown.add(node);
    if (matches) for (let at = model.parent(node); at > ROOT; at = model.parent(at)) (open.add(at), shown.add(at));
  }
  return { nodes, shown, open, outermost };
}

/** The rows of the table, in order. */
export function rowsOf(model: Model, open: ReadonlySet<Node>, metric: Metric, found?: Found): readonly Node[] {
  const rows: Node[] = [];
  const add = (node: Node) => {
    rows.push(node);
    if (!open.has(node)) return;
    for (const child of model.children(node, metric)) if (!found || found.shown.has(child)) add(child);
  };
  add(ROOT);
  return rows;
}
