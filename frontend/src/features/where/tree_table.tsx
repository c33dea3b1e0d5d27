// The rows of the breakdown as a tree grid: arrow keys move, open and close.
import { useRef, useState } from "preact/hooks";
import { colourOf, isLost } from "../../shared/colours";
import { change, count, duration, perSecond, rate, share } from "../../shared/text/format";
import { METRIC_HINTS, METRIC_TITLES, metricText, rowName } from "./labels";
import { ROOT, type Model, type Node } from "./model";
import type { Metric } from "./options";

interface Props {
  readonly model: Model;
  readonly rows: readonly Node[];
  readonly open: ReadonlySet<Node>;
  readonly setOpen: (node: Node, open: boolean) => void;
  readonly metric: Metric;
  readonly found: ReadonlySet<Node> | undefined;
  readonly selected: Node | undefined;
  readonly select: (node: Node) => void;
  /** What the rows are. */
  readonly where: string;
  readonly caption: string;
}

interface Column {
  readonly title: string;
  readonly hint: string;
  readonly shown: "always" | "wide-only" | "wide-only without-details"; // on which pages
  readonly text: (node: Node) => string;
}

export function TreeTable({ model, rows: all, open, setOpen, metric, found, selected, select, where, caption }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [lastFocused, setLastFocused] = useState<Node>(ROOT);
  const [extended, setExtended] = useState<{ readonly found: Props["found"]; readonly limit: number }>();
  const limit = extended && extended.found === found ? extended.limit : PAGE;
  const rows = all.slice(0, limit);
  const focused = rows.includes(lastFocused) ? lastFocused : ROOT;
  const columns = model.other ? differenceColumns(model, metric) : valueColumns(model, metric);
  const focus = (node: Node | undefined) => {
    if (node === undefined) return;
    setLastFocused(node);
    requestAnimationFrame(() => body.current?.querySelector<HTMLElement>(`[data-node="${node}"]`)?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.indexOf(focused);
    const isOpen = open.has(focused) && model.hasChildren(focused);
    const act: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focus(rows[at + 1]),
      ArrowUp: () => focus(rows[at - 1]),
      Home: () => focus(rows[0]),
      End: () => focus(rows[rows.length - 1]),
      ArrowRight: () => (isOpen ? focus(rows[at + 1]) : model.hasChildren(focused) && setOpen(focused, true)),
      ArrowLeft: () => (isOpen ? setOpen(focused, false) : focus(focused === ROOT ? ROOT : model.parent(focused))),
      Enter: () => select(focused),
      " ": () => select(focused),
    };
    const action = act[event.key];
    if (!action) return;
    action();
    event.preventDefault();
  };
  const siblings = positions(model, all);
  return (
    <div class="scrolled" role="region" aria-label={caption}>
      <table class="tree-table" role="treegrid" aria-label={`${caption}. Up and down move, right opens, left closes, Enter shows details.`} onKeyDown={onKeyDown}>
        <thead>
          <tr>
            <th scope="col">{where}</th>
            {columns.map(({ title, hint, shown }) => (
              <th key={title} scope="col" class={`figure ${shown}`} title={hint}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((node) => {
            const level = model.level[node]!;
            const hasChildren = model.hasChildren(node);
            const kind = model.kind(node);
            return (
              <tr
                key={node}
                data-node={node}
                role="row"
                tabIndex={node === focused ? 0 : -1}
                aria-level={level + 1}
                aria-posinset={siblings.get(node)?.[0]}
                aria-setsize={siblings.get(node)?.[1]}
                aria-expanded={hasChildren ? open.has(node) : undefined}
                aria-selected={node === selected}
                class={found && !found.has(node) ? "unmatched" : undefined}
                onClick={() => (setLastFocused(node), select(node))}
                onFocus={() => setLastFocused(node)}
              >
                <th scope="row" role="rowheader">
                  <span class="indented" style={{ paddingInlineStart: `${Math.min(level, MAX_INDENT) * INDENT}px` }}>
                    <button
                      type="button"
                      class="toggle"
                      tabIndex={-1}
                      aria-hidden="true"
                      style={{ visibility: hasChildren ? "visible" : "hidden" }}
                      onClick={(event) => (event.stopPropagation(), setOpen(node, !open.has(node)))}
                    >
                      {open.has(node) ? "▾" : "▸"}
                    </button>
                    <span class={`node-name ${kind}`} title={model.name(node)}>
                      {rowName(model, node)}
                    </span>
                  </span>
                </th>
                {columns.map(({ title, shown, text }, index) => (
                  <td key={title} role="gridcell" class={`figure ${shown}`}>
                    {index === 0 && !model.other ? (
                      <span class="with-bar">
                        <RegimeBar model={model} node={node} />
                        <span>{text(node)}</span>
                      </span>
                    ) : (
                      text(node)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      {all.length > limit && (
        <button type="button" class="more-rows" onClick={() => setExtended({ found, limit: limit + MORE })}>
          Show {count(Math.min(MORE, all.length - limit))} more of {count(all.length - limit)} rows
        </button>
      )}
    </div>
  );
}

const PAGE = 60; // rows that are drawn within a frame
const MORE = 120;
const INDENT = 14; // px
const MAX_INDENT = 14;

/** The node's share of the window, with a part for each regime. */
function RegimeBar({ model, node }: { readonly model: Model; readonly node: Node }) {
  const whole = model.value(ROOT, "time");
  return (
    <span class="regime-bar" aria-hidden="true">
      {model.regimes(node).map(({ regime, title, ns }) => (
        <span
          key={regime}
          class={isLost(regime) ? "hatched" : undefined}
          title={`${title}: ${duration(ns)}`}
          style={{ width: `${(100 * ns) / Math.max(whole, 1)}%`, backgroundColor: colourOf(regime) }}
        />
      ))}
    </span>
  );
}

function valueColumns(model: Model, metric: Metric): readonly Column[] {
  const value = (each: Metric, shown: Column["shown"] = "wide-only without-details"): Column => ({
    title: METRIC_TITLES[each],
    hint: METRIC_HINTS[each],
    shown,
    text: (node) => metricText(each, model.value(node, each)),
  });
  const isTime = metric === "time";
  return [
    value("time", isTime ? "always" : "wide-only"),
    { title: "Share", hint: `Share of the ${METRIC_TITLES[metric].toLowerCase()} of all`, shown: "always", text: (node) => share(model.share(node, metric)) },
    { title: "Own", hint: `${METRIC_TITLES[metric]} without the rows below`, shown: "wide-only", text: (node) => metricText(metric, positive(model.own(node, metric))) },
    ...(isTime ? [] : [value(metric, "always")]),
    ...(metric === "device" ? [] : [value("device")]),
    ...(metric === "host" ? [] : [value("host")]),
    ...(ROOFLINE[model.tree.by] ?? []).map((column): Column => ({ ...column, shown: "wide-only", text: (node) => column.value(model, node) ?? "–" })),
    { title: "Calls", hint: "Number of rows of the node itself", shown: "wide-only without-details", text: (node) => (model.calls(node) > 0 ? count(Number(model.calls(node).toPrecision(3))) : "–") },
  ];
}

interface RooflineColumn {
  readonly title: string;
  readonly hint: string;
  /** undefined if it is not known. */
  readonly value: (model: Model, node: Node) => string | undefined;
}

const ROOF: RooflineColumn = {
  title: "Roofline",
  hint: "Time at the roof of the device, of the time of device operations whose roof is known from their shapes",
  value: ({ tree }, node) => (tree.bounded_ns[node]! > 0 ? share(tree.ideal_ns[node]! / tree.bounded_ns[node]!) : undefined),
};
const INTENSITY: RooflineColumn = {
  title: "FLOP/B",
  hint: "Floating-point operations per byte of minimum traffic, of operators with recorded shapes",
  value: ({ tree }, node) => (tree.flops[node]! > 0 && tree.moved_bytes[node]! > 0 ? (tree.flops[node]! / tree.moved_bytes[node]!).toPrecision(3) : undefined),
};
const RATE: RooflineColumn = {
  title: "Rate",
  hint: "Bytes per time of the communication, which includes the wait for other ranks",
  value: ({ tree }, node) => (tree.moved_bytes[node]! > 0 && tree.device_ns[node]! > 0 ? rate(perSecond(tree.moved_bytes[node]!, tree.device_ns[node]!)) : undefined),
};
const ROOFLINE: Readonly<Record<string, readonly RooflineColumn[]>> = { operator: [INTENSITY, ROOF], kernel: [ROOF], communication: [RATE] };

function differenceColumns(model: Model, metric: Metric): readonly Column[] {
  const title = METRIC_TITLES[metric].toLowerCase();
  return [
    { title: "Change", hint: `Difference of the ${title}, per step`, shown: "always", text: (node) => changeText(metric, model.change(node, metric)) },
    { title: "Before", hint: `${METRIC_TITLES[metric]} of the other recording, per step`, shown: "wide-only", text: (node) => metricText(metric, model.before(node, metric)) },
    { title: "Here", hint: `${METRIC_TITLES[metric]} of this recording, per step`, shown: "always", text: (node) => metricText(metric, model.value(node, metric)) },
  ];
}

export function changeText(metric: Metric, value: number): string {
  if (["time", "device", "host", "wait"].includes(metric)) return change(value);
  return value === 0 ? "–" : `${value > 0 ? "+" : "−"}${metricText(metric, Math.abs(value))}`;
}

/** Rounding of sums may leave a little below zero. */
const positive = (value: number): number => (value < 1 ? 0 : value);

/** The position of each row among the rows with the same parent, from 1, and their number. */
function positions(model: Model, rows: readonly Node[]): ReadonlyMap<Node, readonly [number, number]> {
  const counts = new Map<Node, number>();
  const own = rows.map((node) => {
    const parent = model.parent(node);
    counts.set(parent, (counts.get(parent) ?? 0) + 1);
    return counts.get(parent)!;
  });
  return new Map(rows.map((node, index) => [node, [own[index]!, counts.get(model.parent(node))!]]));
}
