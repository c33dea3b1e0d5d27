// Where the wall time of the whole run went: a strip over time, and a table.
import { runColourOf } from "../../shared/colours";
import type { RunPart, RunTime as RunTimeMessage } from "../../shared/report";
import { duration, share, shortShare } from "../../shared/text/format";
import { binsOf, largestFirst } from "./run_parts";

export function RunTime({ run_time: { elapsed_ns, parts } }: { readonly run_time: RunTimeMessage }) {
  const listed = largestFirst(parts);
  if (listed.length === 0) return null;
  return (
    <section class="run-time">
      <h2>Where the whole run’s time went</h2>
      <Strip parts={parts} />
      <div class="ends muted" aria-hidden="true">
        <span>start</span>
        <span>{duration(elapsed_ns)}</span>
      </div>
      <table aria-label="Where the time of the whole run went">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col" class="figure">Time</th>
            <th scope="col">What it means</th>
          </tr>
        </thead>
        <tbody>
          {listed.map((part) => (
            <tr key={part.kind}>
              <th scope="row">
                <span class="swatch" style={{ backgroundColor: runColourOf(part.kind) }} />
                {part.title}
              </th>
              <td class="figure">{share(part.share)}</td>
              <td class="figure">{duration(part.ns)}</td>
              <td class="meaning">{part.meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The parts over time, stacked in each bin. */
function Strip({ parts }: { readonly parts: readonly RunPart[] }) {
  const bins = binsOf(parts);
  const description = largestFirst(parts).map(({ title, share: part }) => `${title} ${shortShare(part)}`).join(", ");
  return (
    <svg class="run-strip" viewBox={`0 0 ${bins.length} 1`} preserveAspectRatio="none" role="img" aria-label={`Parts of the run over time: ${description}`}>
      {bins.map((stack, bin) =>
        stack.map(({ kind, from, height }) => <rect key={`${bin} ${kind}`} x={bin} y={1 - from - height} width={1.02} height={height} fill={runColourOf(kind)} />),
      )}
    </svg>
  );
}
