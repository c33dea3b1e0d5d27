// The verdict on each regime and its reason, and parts of the report that failed. Clear regimes are collapsed.
import { addStyle } from "../../shared/page/style_sheet";
import type { BrokenPart, RegimeVerdict } from "../../shared/report";
import { share } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { status } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import sheet from "./regimes.css";

addStyle(sheet);

export function Regimes({ regimes, broken }: { regimes: readonly RegimeVerdict[]; broken: readonly BrokenPart[] }) {
  const clear = regimes.filter((regime) => regime.status === "clear");
  const others = regimes.filter((regime) => regime.status !== "clear").sort((a, b) => order(a) - order(b));
  return (
    <section class="regimes">
      <Rows regimes={others} />
      {broken.length > 0 && (
        <ul class="checks">
          {broken.map(({ part, because }) => (
            <li key={part}>
              <Status of="broken" />
              <span class="name">{title(part)}</span>
              <span class="figure" />
              <span class="because">{because}</span>
            </li>
          ))}
        </ul>
      )}
      {clear.length > 0 && (
        <details>
          <summary>
            <span class="tone-good">
              <Icon name="check" />
            </span>
            {clear.length === 1 ? "1 check found nothing" : `${clear.length} checks found nothing`}
          </summary>
          <Rows regimes={clear} />
        </details>
      )}
    </section>
  );
}

const ORDER = ["fires", "broken", "abstains"];

/** The position of a status in the list. Unknown ones come last. */
function order({ status: word }: RegimeVerdict): number {
  const index = ORDER.indexOf(word);
  return index < 0 ? ORDER.length : index;
}

function Rows({ regimes }: { regimes: readonly RegimeVerdict[] }) {
  return (
    <ul class="checks">
      {regimes.map((regime) => (
        <li key={regime.regime}>
          <Status of={regime.status} />
          <span class="name">{regime.title || regime.regime}</span>
          <span class="figure">{share(regime.share)}</span>
          <span class="because">{regime.because}</span>
        </li>
      ))}
    </ul>
  );
}

function Status({ of }: { of: string }) {
  const { text, icon, tone } = status(of);
  return (
    <span class={`status tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </span>
  );
}
