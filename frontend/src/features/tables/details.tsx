// All calls of one operator or kernel, by shapes, callers, kernels, modules and lines.
import { useEffect, useRef } from "preact/hooks";
import type { Details, DetailsRow, RunEntry } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { count, duration } from "../../shared/text/format";
import { kernelName } from "../../shared/text/names";
import { Request } from "../../shared/widgets/request";

export interface Chosen {
  readonly kind: "operator" | "kernel";
  readonly name: string;
}

interface Props {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly chosen: Chosen;
  readonly close: () => void;
  readonly showFocus: (focus: Focus) => void;
}

export function NameDetails({ client, entry, chosen: { kind, name }, close, showFocus }: Props) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.focus(), [kind, name]);
  return (
    <section class="card name-details" tabIndex={-1} ref={section} aria-label={`Details of ${name}`}>
      <header>
        <h2 class="long-name" title={name}>{kernelName(name)}</h2>
        <button type="button" onClick={close}>Close</button>
      </header>
      <Request
        subject={`${entry.id} ${kind} ${name}`}
        version={entry.id}
        waiting="Grouping the calls…"
        send={(signal, onProgress) => poll(() => client.details(entry.id, kind, name, signal), signal, onProgress)}
      >
        {({ details }) => (details ? <Groups details={details} showFocus={showFocus} /> : null)}
      </Request>
    </section>
  );
}

function Groups({ details, showFocus }: { readonly details: Details; readonly showFocus: Props["showFocus"] }) {
  const { shapes, callers, kernels, modules, lines } = details;
  return (
    <>
      <Rows title="By shapes" rows={shapes} showFocus={showFocus} />
      <Rows title="By caller" rows={callers} showFocus={showFocus} />
      <Rows title="By kernel" rows={kernels} showFocus={showFocus} />
      <Rows title="By module" rows={modules} showFocus={showFocus} />
      {lines.length > 0 && (
        <>
          <h3>By function and line</h3>
          <ul>
            {lines.map(({ name, device_ns, host_ns, chain }, index) => (
              <li key={index}>
                <code>{name}</code> {duration(device_ns || host_ns)}
                {chain.length > 1 && <small class="muted">{chain.join(" › ")}</small>}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Rows({ title, rows, showFocus }: { readonly title: string; readonly rows: readonly DetailsRow[]; readonly showFocus: Props["showFocus"] }) {
  if (rows.length === 0) return null;
  return (
    <div class="scrolled" role="region" aria-label={title} tabIndex={0}>
      <table aria-label={title}>
        <thead>
          <tr>
            <th scope="col">{title}</th>
            {["Calls", "Device time", "Host time", "Min", "Mean", "Max"].map((head) => (
              <th key={head} scope="col" class="figure">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, calls, device_ns, host_ns, min_ns, mean_ns, max_ns, begin_ns, end_ns }, index) => (
            <tr key={index}>
              <th scope="row">
                <button type="button" class="link long-name" title={`${name}\n(shows the longest call on the timeline)`} onClick={() => showFocus({ begin: begin_ns, end: end_ns, label: "Longest call" })}>
                  {kernelName(name)}
                </button>
              </th>
              <td class="figure">{count(calls)}</td>
              {[device_ns, host_ns, min_ns, mean_ns, max_ns].map((ns, column) => (
                <td key={column} class="figure">{ns === 0 ? "–" : duration(ns)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
