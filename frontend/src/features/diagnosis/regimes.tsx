// The verdict on each regime and its reason. Clear regimes are collapsed.
import type { RegimeVerdict } from "../../shared/report";
import { share } from "../../shared/text/format";
import { status } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";

export function Regimes({ regimes }: { regimes: readonly RegimeVerdict[] }) {
  const clear = regimes.filter((regime) => regime.status === "clear");
  const others = regimes.filter((regime) => regime.status !== "clear").sort((a, b) => order(a) - order(b));
  return (
    <section class="regimes">
      <h2>What was checked</h2>
      <Rows regimes={others} />
      {clear.length > 0 && (
        <details>
          <summary>
            <span class="tone-good">
              <Icon name="check" />
            </span>
            {clear.length === 1 ? "1 regime is clear" : `${clear.length} regimes are clear`}
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
      {regimes.map((regime) => {
        const { text, icon, tone } = status(regime.status);
        return (
          <li key={regime.regime}>
            <span class={`status tone-${tone}`}>
              <Icon name={icon} />
              {text}
            </span>
            <span class="name">{regime.title || regime.regime}</span>
            <span class="figure">{share(regime.share)}</span>
            <span class="because">{regime.because}</span>
          </li>
        );
      })}
    </ul>
  );
}
