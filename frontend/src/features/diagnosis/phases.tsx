// How it went over time: the run from its first judged step on as a band of stretches, and the same as a table.
import { useState } from "preact/hooks";
import { colourOf, LABEL_COLOUR } from "../../shared/colours";
import { count, duration, elapsed, epochMs, moment, share, shortShare } from "../../shared/text/format";
import type { Phase } from "../../shared/report";
import type { Focus } from "../../app/state";
import { listed, partsOf } from "./phase_band";
import { severity } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { Swatch } from "../../shared/widgets/swatch";

const LISTED = 8;

interface Props {
  readonly stretches: readonly Phase[];
  /** Shows a stretch among the readings; absent where nothing can be shown. */
  readonly look: ((focus: Focus) => void) | undefined;
}

/** Nothing where one stretch is all there is: the account says as much. */
export function Stretches({ stretches, look }: Props) {
  const [all, setAll] = useState(false);
  const first = stretches[0];
  const last = stretches[stretches.length - 1];
  if (!first || !last || stretches.length < 2) return null;
  const rows = all ? stretches : listed(stretches, LISTED);
  const left = stretches.length - rows.length;
  return (
    <section class="stretches">
      <h2>How it went over time</h2>
      <Band stretches={stretches} look={look} />
      <div class="ends muted" aria-hidden="true">
        <span>{moment(epochMs(first.begin_ns))}</span>
        <span>{moment(epochMs(last.end_ns))}</span>
      </div>
      <table aria-label="How it went over time">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col" class="figure">For</th>
            <th scope="col">Regime</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col">Severity</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr key={one.begin_ns}>
              <th scope="row" title={moment(epochMs(one.begin_ns))}>
                {elapsed(one.begin_ns - first.begin_ns)}
              </th>
              <td class="figure">{duration(one.end_ns - one.begin_ns)}</td>
              <td class="owner">
                <Swatch regime={one.regime} lost={isHatched(one)} />
                {look ? (
                  <button type="button" class="link" onClick={() => look(focusOn(one))}>
                    {nameOf(one)}
                    <span class="spoken">, from {elapsed(one.begin_ns - first.begin_ns)}: show the readings</span>
                  </button>
                ) : (
                  nameOf(one)
                )}
              </td>
              <td class="figure">{share(one.share)}</td>
              <td class={`tone-${severity(one.severity).tone}`}>
                <Icon name={severity(one.severity).icon} /> {severity(one.severity).text}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && (
        <p>
          <button type="button" onClick={() => setAll(true)}>
            Show {count(left)} more
          </button>{" "}
          <span class="muted">The ones that lost most are listed, in order of time.</span>
        </p>
      )}
    </section>
  );
}

const nameOf = ({ title, regime }: Phase): string => title || regime;

const focusOn = (one: Phase): Focus => ({ begin: one.begin_ns, end: one.end_ns, label: nameOf(one) });

/** Something keeps the device from its work there. */
const isHatched = ({ severity }: Phase): boolean => severity !== "none";

/** A click leads to the readings; the table does the same for the keyboard and says it in words. */
function Band({ stretches, look }: Props) {
  return (
    <div class={look ? "bar in-time leads" : "bar in-time"} aria-hidden="true">
      {partsOf(stretches).map(({ length, stretch }, place) =>
        stretch ? (
          <div
            key={place}
            class={isHatched(stretch) ? "segment hatched" : "segment"}
            style={{ flexGrow: length, backgroundColor: colourOf(stretch.regime), color: LABEL_COLOUR }}
            title={`${nameOf(stretch)}: ${share(stretch.share)}, for ${duration(length)}`}
            onClick={() => look?.(focusOn(stretch))}
          >
            <span class="label">
              <b>{nameOf(stretch)}</b>
              <span>{shortShare(stretch.share)}</span>
            </span>
          </div>
        ) : (
          <div key={place} class="segment gap" style={{ flexGrow: length }} title={`Nothing is known, for ${duration(length)}`} />
        ),
      )}
    </div>
  );
}
