// Parts beside the findings: the stages of the input pipeline, torch.compile, and the steps of an inference server.
import type { ComponentChildren } from "preact";
import type { CompiledFunction, Compilation, GraphBreak, InputPipeline, InputStorage, Report, Serving, ServingSteps } from "../../shared/report";
import { bytes, count, duration, share } from "../../shared/text/format";
import { placeName } from "../../shared/text/names";

const MIN_SHARE = 0.005;
const STORAGE: Record<string, string> = { rotational: "a rotating disk", ssd: "an SSD", network: "a network file system", memory: "memory" };

export function Details({ input, compilation, serving }: Report) {
  return (
    <>
      {input && <Stages input={input} />}
      {compilation && <Compiled compilation={compilation} />}
      {serving && <ServerSteps serving={serving} />}
    </>
  );
}

function Stages({ input }: { input: InputPipeline }) {
  const { stages, basis, batch_ns, workers, workers_needed, waiting_share, storage } = input;
  const facts = [
    batch_ns !== undefined && `one process takes ${duration(batch_ns)} for a batch`,
    workers !== undefined && (workers ? `${count(workers)} ${workers === 1 ? "worker makes" : "workers make"} them` : "the training process makes them"),
    workers_needed !== undefined && `${count(workers_needed)} would keep up with the rest of the step`,
    waiting_share !== undefined && `a worker has no batch to make for ${share(waiting_share)} of its time`,
  ].filter(Boolean);
  return (
    <section>
      <h2>Making a batch, by stage</h2>
      <table aria-label="Stages of making a batch">
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col" class="figure">Per batch</th>
          </tr>
        </thead>
        <tbody>
          {stages.filter((stage) => stage.share >= MIN_SHARE).map(({ title, share: part, ns_per_batch, place }) => (
            <tr key={title}>
              <th scope="row">
                {capital(title)}
                {place && <Below><code>{placeName(place)}</code></Below>}
              </th>
              <td class="figure">{share(part)}</td>
              <td class="figure">{duration(ns_per_batch)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted footnote">
        {sentence(facts.join("; "))} {basis === "frames" ? "From the Python frames of the trace." : "From samples of the workers' stacks."} {storage && storageText(storage)}
      </p>
    </section>
  );
}

function storageText({ kind, filesystem, read_bytes_per_batch, disk_bytes_per_batch, reads_per_batch }: InputStorage): string {
  const place = [STORAGE[kind], kind && filesystem ? `(${filesystem})` : filesystem].filter(Boolean).join(" ");
  const disk = disk_bytes_per_batch !== undefined ? `, ${bytes(disk_bytes_per_batch)} of them from the disk` : "";
  const read = read_bytes_per_batch !== undefined ? `${bytes(read_bytes_per_batch)} per batch in ${count(Math.round(reads_per_batch ?? 0))} calls${disk}` : "";
  return `Data: ${[place && `on ${place}`, read].filter(Boolean).join("; ")}.`;
}

function Compiled({ compilation }: { compilation: Compilation }) {
  const { functions, breaks, outside, compile_ns, regions, missing } = compilation;
  return (
    <section>
      <h2>torch.compile</h2>
      {regions !== undefined && (
        <p>
          {count(regions)} compiled {regions === 1 ? "region" : "regions"} per step{compile_ns ? <>; compiling takes {duration(compile_ns)} per step</> : ""}.
        </p>
      )}
      {functions.length + breaks.length > 0 && (
        <table aria-label="Compilations and graph breaks">
          <thead>
            <tr>
              <th scope="col">What, where and why</th>
              <th scope="col" class="figure">Time</th>
            </tr>
          </thead>
          <tbody>
            {functions.map((entry, index) => (
              <tr key={index}>
                <th scope="row">
                  {entry.failure ? "Runs without compiled code" : <>Compiled{entry.compilations > 0 && <> {count(entry.compilations)} {entry.compilations === 1 ? "time" : "times"}</>}</>}: <code>{where(entry)}</code>
                  {entry.failure && <Below>{capital(entry.failure)}</Below>}
                  {entry.reasons.map((reason) => <Below key={reason}>Guard: {reason}</Below>)}
                </th>
                <td class="figure">{entry.ns !== undefined && duration(entry.ns)}</td>
              </tr>
            ))}
            {breaks.map((entry, index) => (
              <tr key={index}>
                <th scope="row">
                  Graph break: <code>{where(entry)}</code>
                  {entry.reason && <Below>{entry.reason}</Below>}
                </th>
                <td class="figure">{entry.ns_per_step !== undefined && <>{duration(entry.ns_per_step)} per step</>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {outside.length > 0 && (
        <p class="muted footnote">
          Operators outside of the graphs, per step: {outside.map(({ name, calls, ns_per_step }) => `${name} (${count(calls)} ${calls === 1 ? "call" : "calls"}, ${duration(ns_per_step)})`).join(", ")}.
        </p>
      )}
      {missing && <p class="muted footnote">{missing}</p>}
    </section>
  );
}

const where = ({ file, line, function: name }: CompiledFunction | GraphBreak): string =>
  name || file ? placeName({ file, line, function: name, block: "", module: "", share: 1, chain: [] }) : "a function that was not recorded";

function ServerSteps({ serving: { server, kinds, shapes } }: { serving: Serving }) {
  return (
    <section>
      <h2>Steps of the inference server ({server})</h2>
      <table aria-label="Steps of the inference server">
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col" class="figure">Host</th>
            <th scope="col" class="figure">Device</th>
            <th scope="col" class="figure">Pause before</th>
          </tr>
        </thead>
        <tbody>
          {shapes.length > kinds.length && kinds.map((steps) => <StepsRow key={steps.kind} steps={steps} shape="" />)}
          {shapes.map((steps, index) => <StepsRow key={index} steps={steps} shape={shapeOf(steps)} />)}
        </tbody>
      </table>
    </section>
  );
}

function StepsRow({ steps: { kind, count: many, share: part, step_ns, device_ns, pause_ns }, shape }: { steps: ServingSteps; shape: string }) {
  return (
    <tr>
      <th scope="row">
        {capital(kind)}: {count(many)} {many === 1 ? "step" : "steps"}
        {shape && <Below>{shape}</Below>}
      </th>
      <td class="figure">{share(part)}</td>
      <td class="figure">{duration(step_ns)}</td>
      <td class="figure">{device_ns !== undefined && duration(device_ns)}</td>
      <td class="figure">{pause_ns !== undefined && duration(pause_ns)}</td>
    </tr>
  );
}

/** The requests and tokens of a shape; empty for a kind. */
function shapeOf({ prefill_requests, prefill_tokens, decode_requests, decode_tokens }: ServingSteps): string {
  const part = (name: string, requests: number | undefined, tokens: number | undefined): string =>
    requests || tokens ? `${name} ${count(requests ?? 0)} ${requests === 1 ? "request" : "requests"}${tokens === undefined ? "" : `, ${count(tokens)} tokens`}` : "";
  return [part("prefill", prefill_requests, prefill_tokens), part("decode", decode_requests, decode_tokens)].filter(Boolean).join("; ");
}

/** A line of its own in a cell. */
function Below({ children }: { children: ComponentChildren }) {
  return (
    <>
      <br />
      <small>{children}</small>
    </>
  );
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
const sentence = (text: string): string => (text ? `${capital(text)}.` : "");
