// How much of the device the run uses, and what a run without a problem could still gain.
import { addStyle } from "../../shared/page/style_sheet";
import type { Efficiency as Message, Headroom, Report } from "../../shared/report";
import { evidence } from "../../shared/text/format";
import { WithCode } from "../../shared/widgets/with_code";
import sheet from "./efficiency.css";
import { boundText, figuresOf, type Figure } from "../../shared/text/efficiency";

addStyle(sheet);

export function Efficiency({ report: { efficiency, headroom } }: { readonly report: Report }) {
  return (
    <>
      {headroom.length > 0 && <Remaining headroom={headroom} />}
      {efficiency && efficiency.notes.length > 0 && <Card efficiency={efficiency} />}
    </>
  );
}

function Card({ efficiency }: { efficiency: Message }) {
  const figures = figuresOf(efficiency);
  const known = figures.filter(({ value }) => value !== undefined);
  const mfu = figures.find(({ note }) => note.field === "mfu")?.note;
  const missing = figures.filter(({ value }) => value === undefined);
  return (
    <section class="efficiency">
      <h2>Efficiency</h2>
      <dl>
        {known.map(({ note, value }) => (
          <div key={note.field} title={note.definition}>
            <dt>{note.title}</dt>
            <dd>
              <b>{value}</b>
              <small>{note.field === "samples_per_second" ? efficiency.samples_basis : note.basis}</small>
            </dd>
          </div>
        ))}
      </dl>
      {mfu && <p class="muted footnote"><WithCode text={mfu.because ? `MFU is not known: ${mfu.because}.` : mfu.definition} /></p>}
      <details>
        <summary>{missing.length > 0 ? `Definitions, and why ${missing.length} ${missing.length === 1 ? "figure is" : "figures are"} not known` : "Definitions"}</summary>
        <Definitions figures={[...known, ...missing]} />
      </details>
    </section>
  );
}

function Definitions({ figures }: { figures: readonly Figure[] }) {
  return (
    <dl class="definitions">
      {figures.map(({ note }) => (
        <div key={note.field}>
          <dt>{note.title}</dt>
          <dd>
            {note.definition}
            {note.because && <span class="muted"> Not known: <WithCode text={note.because} />.</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Remaining({ headroom }: { headroom: readonly Headroom[] }) {
  return (
    <section class="headroom">
      <h2>Where headroom remains</h2>
      <ul>
        {headroom.map((item) => (
          <li key={item.kind}>
            <h3>
              {item.title}
              {boundText(item) && <span class="muted">: {boundText(item)}</span>}
            </h3>
            <ul class="facts-of">
              {item.evidence.map((row) => (
                <li key={row.label}>
                  {row.label}: <b>{evidence(row)}</b>
                </li>
              ))}
            </ul>
            <p><WithCode text={item.summary} /></p>
          </li>
        ))}
      </ul>
    </section>
  );
}
