// The run over time: its phases from the first judged step on, as a band and as a table.
import { useState } from "preact/hooks";
import { colourOf, LABEL_COLOUR } from "../../shared/colours";
import type { Phase } from "../../shared/report";
import type { Focus } from "../../shared/run/focus";
import { count, duration, elapsed, epochMs, moment, share, shortShare } from "../../shared/text/format";
import { severity } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { Swatch } from "../../shared/widgets/swatch";
import { costliest, segmentsOf } from "./phase_band";

const MAX_LISTED = 8;

interface Props {
  readonly phases: readonly Phase[];
  /** Shows a phase in the telemetry. Undefined if that is not possible. */
  readonly showFocus: ((focus: Focus) => void) | undefined;
}

/** Nothing if there is only one phase: the account contains the same. */
export function Phases({ phases, showFocus }: Props) {
  const [showsAll, setShowsAll] = useState(false);
  const first = phases[0];
  const last = phases[phases.length - 1];
  if (!first || !last || phases.length < 2) return null;
  const rows = showsAll ? phases : costliest(phases, MAX_LISTED);
  const hidden = phases.length - rows.length;
  return (
    <section class="phases">
      <h2>The run over time</h2>
      <Band phases={phases} showFocus={showFocus} />
      <div class="ends muted" aria-hidden="true">
        <span>{moment(epochMs(first.begin_ns))}</span>
        <span>{moment(epochMs(last.end_ns))}</span>
      </div>
      <table aria-label="Phases of the run">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col" class="figure">For</th>
            <th scope="col">Bottleneck</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col">Severity</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((phase) => (
            <tr key={phase.begin_ns}>
              <th scope="row" title={moment(epochMs(phase.begin_ns))}>
                {elapsed(phase.begin_ns - first.begin_ns)}
              </th>
              <td class="figure">{duration(phase.end_ns - phase.begin_ns)}</td>
              <td class="owner">
                <Swatch regime={phase.regime} lost={isHatched(phase)} />
                {showFocus ? (
                  <button type="button" class="link" onClick={() => showFocus(focusOn(phase))}>
                    {nameOf(phase)}
                    <span class="visually-hidden">, from {elapsed(phase.begin_ns - first.begin_ns)}: show the telemetry</span>
                  </button>
                ) : (
                  nameOf(phase)
                )}
              </td>
              <td class="figure">{share(phase.share)}</td>
              <td class={`tone-${severity(phase).tone}`}>
                <Icon name={severity(phase).icon} /> {severity(phase).text}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 && (
        <p>
          <button type="button" onClick={() => setShowsAll(true)}>
            Show {count(hidden)} more
          </button>{" "}
          <span class="muted">The phases with the most lost time are listed, in order of time.</span>
        </p>
      )}
    </section>
  );
}

const nameOf = ({ title, regime }: Phase): string => title || regime;

const focusOn = (phase: Phase): Focus => ({ begin: phase.begin_ns, end: phase.end_ns, label: nameOf(phase) });

/** Returns true if time was lost in the phase. */
const isHatched = ({ severity }: Phase): boolean => severity !== "none";

/** A click shows the telemetry of a phase. The table offers the same to the keyboard and to screen readers. */
function Band({ phases, showFocus }: Props) {
  return (
    <div class={showFocus ? "bar in-time clickable" : "bar in-time"} aria-hidden="true">
      {segmentsOf(phases).map(({ length, phase }, index) =>
        phase ? (
          <div
            key={index}
            class={isHatched(phase) ? "segment hatched" : "segment"}
            style={{ flexGrow: length, backgroundColor: colourOf(phase.regime), color: LABEL_COLOUR }}
            title={`${nameOf(phase)}: ${share(phase.share)}, for ${duration(length)}`}
            onClick={() => showFocus?.(focusOn(phase))}
          >
            <span class="label">
              <b>{nameOf(phase)}</b>
              <span>{shortShare(phase.share)}</span>
            </span>
          </div>
        ) : (
          <div key={index} class="segment gap" style={{ flexGrow: length }} title={`No data, for ${duration(length)}`} />
        ),
      )}
    </div>
  );
}
