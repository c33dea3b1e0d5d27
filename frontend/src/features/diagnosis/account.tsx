// The account: where the step time goes, as a bar and as a table.
import { useState } from "preact/hooks";
import { colourOf, isLost, LABEL_COLOUR } from "../../shared/colours";
import type { AccountRow } from "../../shared/report";
import { duration, share, shortShare } from "../../shared/text/format";
import { Fold } from "../../shared/widgets/fold";
import { Swatch } from "../../shared/widgets/swatch";
import { accountRows } from "./account_rows";
import { needsDevice } from "./checked";

interface AccountProps {
  readonly account: readonly AccountRow[];
  /** True if the window is divided into steps. Otherwise its times are totals. */
  readonly inSteps: boolean;
  /** True for a run on the CPU, which has no device that could wait. */
  readonly onCpu: boolean;
}

export function Account({ account, inSteps, onCpu }: AccountProps) {
  const [hovered, setHovered] = useState<string>();
  const { timed, empty } = accountRows(account);
  return (
    <section class="account">
      <h2>{inSteps ? "Where each step’s time goes" : "Where the recorded time goes"}</h2>
      <Bar rows={timed} hovered={hovered} setHovered={setHovered} />
      <ul class="shares" aria-label="Most of the time">
        {timed.slice(0, LEGEND).map((row) => (
          <li key={row.regime}>
            <Swatch regime={row.regime} />
            {nameOf(row)} <span class="muted">{shortShare(row.share)}</span>
          </li>
        ))}
      </ul>
      <Fold title="Each kind of time, and what it means">
        <table aria-label="Where the time goes, by kind">
          <thead>
            <tr>
              <th scope="col">Kind of time</th>
              <th scope="col" class="figure">Share</th>
              <th scope="col" class="figure">{inSteps ? "Per step" : "Time"}</th>
              <th scope="col">What it means</th>
            </tr>
          </thead>
          <tbody>
            {timed.map((row) => (
              <tr
                key={row.regime}
                class={hovered === row.regime ? "hovered" : undefined}
                onPointerEnter={() => setHovered(row.regime)}
                onPointerLeave={() => setHovered(undefined)}
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
        {timed.some(({ regime }) => isLost(regime)) && <p class="muted footnote">Striped: time in which {onCpu ? "no operator computes" : "the device does no useful work"}.</p>}
        <RegimesWithoutTime rows={onCpu ? empty.filter(({ regime }) => !needsDevice(regime)) : empty} />
      </Fold>
    </section>
  );
}

/** Regimes whose shares are shown below the bar. */
const LEGEND = 5;
const nameOf = (row: AccountRow) => row.title || row.regime;

interface BarProps {
  readonly rows: readonly AccountRow[];
  readonly hovered: string | undefined;
  readonly setHovered: (regime: string | undefined) => void;
}

function Bar({ rows, hovered, setHovered }: BarProps) {
  const description = rows.map((row) => `${nameOf(row)} ${shortShare(row.share)}`).join(", ");
  return (
    <div class={hovered === undefined ? "bar" : "bar hovering"} role="img" aria-label={`Shares of the time: ${description}`}>
      {rows.map((row) => (
        <div
          key={row.regime}
          class={`segment ${isLost(row.regime) ? "hatched" : ""} ${hovered === row.regime ? "hovered" : ""}`}
          style={{ flexGrow: row.share, backgroundColor: colourOf(row.regime), color: LABEL_COLOUR }}
          title={`${nameOf(row)}: ${share(row.share)}, ${duration(row.ns_per_step)}`}
          onPointerEnter={() => setHovered(row.regime)}
          onPointerLeave={() => setHovered(undefined)}
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

function RegimesWithoutTime({ rows }: { rows: readonly AccountRow[] }) {
  if (rows.length === 0) return null;
  return (
    <details class="none">
      <summary>{rows.length === 1 ? "1 kind takes no time" : `${rows.length} kinds take no time`}</summary>
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
