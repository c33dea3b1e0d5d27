// Parts beside the findings: the functions of the loop, the stages of the input pipeline, torch.compile and captured graphs.
import type { ComponentChildren } from "preact";
import type { Compilation, GraphReplays, InputPipeline, Report, StepPart } from "../../shared/report";
import { duration, share } from "../../shared/text/format";
import { placeName } from "../../shared/text/names";
import { WithCode } from "../../shared/widgets/with_code";
import { capital, compiledText, graphText, outsideText, ownersText, partName, PARTS_TITLE, perOf, regionsText, replaysText, shownStages, stagesText, stagesTitle, where } from "./details_text";

export function Details(report: Report) {
  const { input, compilation, graphs, step_parts: parts } = report;
  const per = perOf(report);
  return (
    <>
      {parts.length > 0 && <StepParts parts={parts} />}
      {input && <Stages input={input} />}
      {compilation && <Compiled compilation={compilation} per={per} />}
      {graphs && <Replays graphs={graphs} per={per} />}
    </>
  );
}

function StepParts({ parts }: { parts: readonly StepPart[] }) {
  return (
    <section>
      <h2>{PARTS_TITLE}</h2>
      <table aria-label={PARTS_TITLE}>
        <thead>
          <tr>
            <th scope="col">Function</th>
            <th scope="col" class="figure">Share</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <tr key={partName(part)}>
              <th scope="row">
                <code>{partName(part)}</code>
                <Below>{ownersText(part)}</Below>
              </th>
              <td class="figure">{share(part.share)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Stages({ input }: { input: InputPipeline }) {
  return (
    <section>
      <h2>{stagesTitle(input)}</h2>
      {input.stages.length > 0 && (
        <table aria-label="Stages of making a batch">
          <thead>
            <tr>
              <th scope="col">Stage</th>
              <th scope="col" class="figure">Share</th>
              <th scope="col" class="figure">Per batch</th>
            </tr>
          </thead>
          <tbody>
            {shownStages(input).map(({ title, share: part, ns_per_batch, place }) => (
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
      )}
      <p class="muted footnote">{stagesText(input)}</p>
    </section>
  );
}

function Compiled({ compilation, per }: { compilation: Compilation; per: string }) {
  const { functions, breaks, outside, compile_ns, regions, missing } = compilation;
  return (
    <section>
      <h2>torch.compile</h2>
      {regions !== undefined && <p>{regionsText(regions, compile_ns, per)}</p>}
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
                  {compiledText(entry)}: <code>{where(entry)}</code>
                  {entry.failure && <Below><WithCode text={capital(entry.failure)} /></Below>}
                  {entry.reasons.map((reason) => <Below key={reason}>Guard: {reason}</Below>)}
                </th>
                <td class="figure">{entry.ns !== undefined && duration(entry.ns)}</td>
              </tr>
            ))}
            {breaks.map((entry, index) => (
              <tr key={index}>
                <th scope="row">
                  Graph break: <code>{where(entry)}</code>
                  {entry.reason && <Below><WithCode text={entry.reason} /></Below>}
                </th>
                <td class="figure">{entry.ns_per_step !== undefined && <>{duration(entry.ns_per_step)} {per}</>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {outside.length > 0 && <p class="muted footnote">{outsideText(outside, per)}</p>}
      {missing && <p class="muted footnote">{missing}</p>}
    </section>
  );
}

function Replays({ graphs: found, per }: { graphs: GraphReplays; per: string }) {
  return (
    <section>
      <h2>CUDA graphs</h2>
      <p>{replaysText(found, per)}</p>
      <table aria-label="Launches of captured graphs">
        <thead>
          <tr>
            <th scope="col">Graph</th>
            <th scope="col" class="figure">On the device</th>
            <th scope="col" class="figure">Idle in it</th>
            <th scope="col" class="figure">Idle before</th>
            <th scope="col" class="figure">Call</th>
          </tr>
        </thead>
        <tbody>
          {found.graphs.map((graph, index) => (
            <tr key={index}>
              <th scope="row">{graphText(graph, per)}</th>
              <td class="figure">{duration(graph.device_ns)}</td>
              <td class="figure">{duration(graph.idle_ns)}</td>
              <td class="figure">{graph.idle_before_ns !== undefined && duration(graph.idle_before_ns)}</td>
              <td class="figure">{duration(graph.call_ns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.outside.length > 0 && <p class="muted footnote">{outsideText(found.outside, per, "Operations")}</p>}
    </section>
  );
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
