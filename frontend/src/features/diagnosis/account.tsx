// Where each step's time goes: one bar, and the same rows as a table.
import { useState } from "preact/hooks";
import { folded } from "./account_rows";
import { colourOf, isLost, LABEL_COLOUR } from "../../shared/colours";
import { duration, share, shortShare } from "../../shared/text/format";
import type { AccountRow } from "../../shared/report";
import { Swatch } from "../../shared/widgets/swatch";

interface AccountProps {
  readonly account: readonly AccountRow[];
  /** Whether the window was cut into steps; else its time is told as a whole. */
  readonly inSteps: boolean;
}

export function Account({ account, inSteps }: AccountProps) {
  const [pointed, point] = useState<string>();
  const { shown, empty } = folded(account);
  return (
    <section class="account">
      <h2>{inSteps ? "Where each step’s time goes" : "Where the recorded time goes"}</h2>
      <Bar rows={shown} pointed={pointed} point={point} />
      <table aria-label="Where the time goes, by regime">
        <thead>
          <tr>
            <th scope="col">Regime</th>
            <th scope="col" class="figure">Share</th>
            <th scope="col" class="figure">{inSteps ? "Per step" : "Time"}</th>
            <th scope="col">What it means</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr
              key={row.regime}
              class={pointed === row.regime ? "pointed" : undefined}
              onPointerEnter={() => point(row.regime)}
              onPointerLeave={() => point(undefined)}
            >
              <th scope="row">
                <Swatch regime={row.regime} />
                {nameOf(row)}
              </th>
              <td class="figure">{share(row.share)}</td>
              <td class="figure">{duration(row.ns_per_step)}</td>
              <td class="meaning">{row.meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.some(({ regime }) => isLost(regime)) && <p class="muted footnote">Hatched: time in which the device is kept from working.</p>}
      <Empty rows={empty} />
    </section>
  );
}

const nameOf = (row: AccountRow) => row.title || row.regime;

interface BarProps {
  readonly rows: readonly AccountRow[];
  readonly pointed: string | undefined;
  readonly point: (regime: string | undefined) => void;
}

function Bar({ rows, pointed, point }: BarProps) {
  const spoken = rows.map((row) => `${nameOf(row)} ${shortShare(row.share)}`).join(", ");
  return (
    <div class={pointed === undefined ? "bar" : "bar pointing"} role="img" aria-label={`Of the time: ${spoken}`}>
      {rows.map((row) => (
        <div
          key={row.regime}
          class={`segment ${isLost(row.regime) ? "hatched" : ""} ${pointed === row.regime ? "pointed" : ""}`}
          style={{ flexGrow: row.share, backgroundColor: colourOf(row.regime), color: LABEL_COLOUR }}
          title={`${nameOf(row)}: ${share(row.share)}, ${duration(row.ns_per_step)}`}
          onPointerEnter={() => point(row.regime)}
          onPointerLeave={() => point(undefined)}
        >
          <span class="label">
            <b>{nameOf(row)}</b>
            <span>{shortShare(row.share)}</span>
          </span>
        </div>
      ))}
    </div>
  );
}

function Empty({ rows }: { rows: readonly AccountRow[] }) {
  if (rows.length === 0) return null;
  return (
    <details class="none">
      <summary>{rows.length === 1 ? "1 regime with no time" : `${rows.length} regimes with no time`}</summary>
      <dl>
        {rows.map((row) => (
          <div key={row.regime}>
            <dt>{nameOf(row)}</dt>
            <dd class="muted">{row.meaning}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
