// Where the time goes: by module, function, operator or range, as a tree grid and as a flame graph.
import { useEffect, useMemo, useState } from "preact/hooks";
import { addStyle } from "../../shared/page/style_sheet";
import type { RunEntry, TreeAnswer } from "../../shared/report";
import { isTrace } from "../../shared/run/groups";
import { comparedName, keyOf } from "../../shared/run/keys";
import type { ViewProps } from "../../shared/run/view_props";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import viewStyle from "../../shared/style/view.css";
import { count, duration, share } from "../../shared/text/format";
import { Request } from "../../shared/widgets/request";
import { Flame } from "./flame";
import { BY_TITLES, METRIC_HINTS, METRIC_TITLES } from "./labels";
import { Model, openAtFirst, rowsOf, search, type Node } from "./model";
import { NodeDetails } from "./node_details";
import { formatOptions, GROUPINGS, METRICS, parseOptions, requestOf, type Options } from "./options";
import sheet from "./tree.css";
import { TreeTable } from "./tree_table";

addStyle(charts);
addStyle(viewStyle);
addStyle(sheet);

interface Props extends ViewProps {
  readonly runs: readonly RunEntry[];
  readonly options: string | undefined;
  readonly showTree: (options: string) => void;
  readonly showFinding: (cause: string) => void;
}

export function TreeView(props: Props) {
  const { client, entry, report, runs } = props;
  const options = useMemo(() => parseOptions(props.options), [props.options]);
  const own = { ...props, options, setOptions: (next: Options) => props.showTree(formatOptions(next)) };
  const other = runs.find((run) => keyOf(run) === options.against);
  const request = requestOf(options, other?.id);
  return (
    <section class="breakdown">
      <Controls {...own} />
      <Request
        subject={`${entry.id} tree ${request}`}
        version={report}
        waiting="Reading the recording…"
        send={(signal, onProgress) => poll(() => client.tree(entry.id, request, signal), signal, onProgress)}
      >
        {(answer) => (answer.tree ? <Content {...own} answer={answer} /> : <p class="muted">Nothing ran in this recording.</p>)}
      </Request>
    </section>
  );
}

type WithOptions = Omit<Props, "options"> & { readonly options: Options; readonly setOptions: (options: Options) => void };

function Controls({ options, setOptions, runs, entry }: WithOptions) {
  const others = runs.filter((run) => isTrace(run) && keyOf(run) !== keyOf(entry)).slice(0, MAX_OTHERS);
  const set = (change: Partial<Options>) => setOptions({ ...options, ...change });
  return (
    <div class="controls">
      <span class="buttons" role="group" aria-label="Group by">
        {GROUPINGS.map((by) => (
          <button key={by} type="button" aria-pressed={by === options.by} onClick={() => set({ by, find: "" })}>
            {BY_TITLES[by]}
          </button>
        ))}
      </span>
      <span class="buttons" role="group" aria-label="Show as">
        <button type="button" aria-pressed={!options.flame} onClick={() => set({ flame: false })}>Table</button>
        <button type="button" aria-pressed={options.flame} onClick={() => set({ flame: true })}>Flame graph</button>
      </span>
      <label>
        {options.flame ? "Width" : "Order by"}{" "}
        <select value={options.metric} title={METRIC_HINTS[options.metric]} onChange={(event) => set({ metric: METRICS.find((metric) => metric === event.currentTarget.value) ?? "time" })}>
          {METRICS.map((metric) => (
            <option key={metric} value={metric}>
              {METRIC_TITLES[metric]}
            </option>
          ))}
        </select>
      </label>
      {options.by === "module" && (
        <label>
          <input type="checkbox" checked={options.merged} onChange={(event) => set({ merged: event.currentTarget.checked })} /> Merge equal layers
        </label>
      )}
      {others.length > 0 && (
        <label>
          Difference from{" "}
          <select
            value={options.against ?? ""}
            onChange={(event) => {
              const { against: _, ...rest } = options;
              setOptions(event.currentTarget.value ? { ...rest, against: event.currentTarget.value } : rest);
            }}
          >
            <option value="">no other recording</option>
            {others.map((run) => (
              <option key={keyOf(run)} value={keyOf(run)}>
                {comparedName(run)}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

const MAX_OTHERS = 200;

function Content(props: WithOptions & { readonly answer: TreeAnswer }) {
  const { answer, options, setOptions, report, showFocus, showFinding } = props;
  const tree = answer.tree!;
  const model = useMemo(() => new Model(tree, answer.other), [answer]);
  const [opened, setOpened] = useState<ReadonlySet<Node>>(() => openAtFirst(model, options.metric));
  const [selected, select] = useState<Node>();
  const [text, setText] = useState(options.find);
  const found = useMemo(() => search(model, text), [model, text]);
  useEffect(() => (setOpened(openAtFirst(model, options.metric)), select(undefined)), [model]);
  useEffect(() => setText(options.find), [options.find]);
  const open = useMemo(() => (found ? new Set([...opened, ...found.open]) : opened), [opened, found]);
  const rows = useMemo(() => rowsOf(model, open, options.metric, found), [model, open, options.metric, found]);
  const setOpen = (node: Node, isOpen: boolean) => {
    const next = new Set(open);
    if (isOpen) next.add(node);
    else next.delete(node);
    setOpened(next);
  };
  const shared = { model, metric: options.metric, found: found?.nodes, selected, select };
  const outermost = found?.outermost.reduce((sum, node) => sum + model.value(node, options.metric), 0) ?? 0;
  return (
    <>
      <div class="controls">
        <span class="extent" role="status">
          {tree.steps > 1 ? `Per step: ${duration(tree.window_ns / tree.steps)}, mean of ${tree.steps} steps` : `Window: ${duration(tree.window_ns)}`}
          {found && <span class="muted"> · {count(found.nodes.size)} found, {share(outermost / Math.max(model.value(0, options.metric), 1))}</span>}
        </span>
        <StepRange options={options} setOptions={setOptions} recorded={tree.steps_recorded} />
        {tree.devices.length > 1 && (
          <label>
            Device{" "}
            <select value={tree.device} onChange={(event) => setOptions({ ...options, device: Number(event.currentTarget.value) })}>
              {tree.devices.map(({ index, name, total_ns }) => (
                <option key={index} value={index}>
                  {index} {name} ({duration(total_ns)})
                </option>
              ))}
            </select>
          </label>
        )}
        <input
          type="search"
          placeholder="Search"
          aria-label="Search names"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onChange={(event) => setOptions({ ...options, find: event.currentTarget.value })}
        />
      </div>
      {tree.notes.map((note) => (
        <p key={note} class="muted note">{note}</p>
      ))}
      {options.flame && <Flame {...shared} />}
      <div class={selected === undefined ? "tree-and-details" : "tree-and-details with-details"}>
        {!options.flame && <TreeTable {...shared} rows={rows} open={open} setOpen={setOpen} where={options.by === "line" ? BY_TITLES.line : "Where"} caption={`Time by ${BY_TITLES[options.by].toLowerCase()}`} />}
        {selected !== undefined && selected < model.size && <NodeDetails model={model} node={selected} report={report} showFocus={showFocus} showFinding={showFinding} />}
      </div>
      {tree.nodes_left_out > 0 && <p class="muted note">{count(tree.nodes_left_out)} small rows are shown as “more”. The command <code>tb-bottleneck tree</code> lists all of them.</p>}
    </>
  );
}

function StepRange({ options, setOptions, recorded }: { readonly options: Options; readonly setOptions: (options: Options) => void; readonly recorded: number }) {
  if (recorded < 2) return null;
  const set = (name: "first" | "last", text: string) => {
    const value = Math.min(Math.max(Math.round(Number(text)) || 1, 1), recorded);
    const [first, last] = name === "first" ? [value, Math.max(value, options.last ?? recorded)] : [Math.min(value, options.first ?? 1), value];
    setOptions({ ...options, first, last });
  };
  const input = (name: "first" | "last", value: number) => (
    <input type="number" min={1} max={recorded} value={value} aria-label={name === "first" ? "First step" : "Last step"} onChange={(event) => set(name, event.currentTarget.value)} />
  );
  return (
    <span class="steps">
      Steps {input("first", options.first ?? 1)} to {input("last", options.last ?? recorded)} of {recorded}
    </span>
  );
}
