// The table that the view begins with: the usual other devices, batches, precisions and worker counts, each predicted.
import { colourOf } from "../../../shared/colours";
import { REGIMES } from "../../../shared/regimes";
import type { PeakMemory, WhatIfRow, WhatIfTable } from "../../../shared/report";
import { bytes, duration, factor } from "../../../shared/text/format";
import { Notes } from "../../../shared/widgets/notes";
import { AS_RECORDED, conditionsText } from "./conditions";

interface Props {
  readonly table: WhatIfTable;
  /** Opens the prediction under conditions, as the address spells them. */
  readonly predict: (conditions: string) => void;
}

const LABELS: ReadonlyMap<string, string> = new Map(REGIMES.map(({ id, label }) => [id, label]));

export function UsualConditions({ table, predict }: Props) {
  const { rows, notes, step_ns: now } = table;
  return (
    <>
      {rows.length > 0 && (
        <section class="usual">
          <h2>Predicted for this recording</h2>
          <p class="muted">Now {duration(now)} per step. Choose a row to see what it assumes, and what would limit it then.</p>
          <div class="scrolled" role="region" aria-label="Predictions under the usual conditions" tabIndex={0}>
            <table aria-label="Predictions under the usual conditions">
              <thead>
                <tr>
                  <th scope="col">If it had</th>
                  <th scope="col" class="figure">Time</th>
                  <th scope="col" class="figure">Speed</th>
                  <th scope="col" class="figure">90 % interval</th>
                  <th scope="col">Then mostly</th>
                  <th scope="col" class="figure">Peak memory</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row, index) => (
                  <Row key={row.title} row={row} begins={index > 0 && rows[index - 1]?.group !== row.group} predict={predict} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <Notes lines={notes} title={rows.length > 0 ? "Not in the table" : "Nothing can be predicted"} />
    </>
  );
}

function Row({ row, begins, predict }: { row: WhatIfRow; begins: boolean; predict: Props["predict"] }) {
  const { title, group, value, per, regime, after, memory } = row;
  if (!after) return null;
  const sure = after.low > 1 ? "faster" : after.high < 1 ? "slower" : "";
  return (
    <tr class={begins ? "begins" : undefined}>
      <th scope="row">
        <button type="button" class="link" onClick={() => predict(conditionsText({ ...AS_RECORDED, [group]: value }))}>
          {title}
        </button>
      </th>
      <td class="figure">
        {duration(after.step_ns)} per {per}
      </td>
      <td class={`figure ${sure}`}>{factor(after.speedup)}</td>
      <td class="figure">
        {factor(after.low)} to {factor(after.high)}
      </td>
      <td>
        <span class="swatch" style={{ backgroundColor: colourOf(regime) }} />
        {LABELS.get(regime) ?? regime}
      </td>
      <td class="figure">{memory ? memoryText(memory) : "–"}</td>
    </tr>
  );
}

function memoryText({ peak_bytes: peak, fits }: PeakMemory): string {
  const verdict = fits === undefined ? "" : fits ? ", fits" : ", may not fit";
  return `${bytes(peak)}${verdict}`;
}
