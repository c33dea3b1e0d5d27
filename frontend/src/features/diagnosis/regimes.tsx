// What was checked, with each regime's answer and why. What is clear is folded away.
import { share } from "../../shared/text/format";
import type { RegimeVerdict } from "../../shared/report";
import { status } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";

export function Regimes({ regimes }: { regimes: readonly RegimeVerdict[] }) {
  const clear = regimes.filter((regime) => regime.status === "clear");
  const rest = regimes.filter((regime) => regime.status !== "clear").sort((a, b) => order(a) - order(b));
  return (
    <section class="regimes">
      <h2>What was checked</h2>
      <Rows regimes={rest} />
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

/** Known answers in this order, a word that we do not know after them. */
function order({ status: word }: RegimeVerdict): number {
  const place = ORDER.indexOf(word);
  return place < 0 ? ORDER.length : place;
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
