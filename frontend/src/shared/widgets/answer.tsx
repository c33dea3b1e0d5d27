// The answer to a question about runs: its first sentence, the rest, and badges.
import type { ComponentChildren } from "preact";
import { splitHeadline } from "../text/names";
import type { Label } from "../text/vocabulary";
import { Icon } from "./icon";

interface Props {
  readonly headline: string;
  readonly badge?: Label;
  /** Between the headline and the badges. */
  readonly detail?: ComponentChildren;
  /** More badges and buttons, as list items. */
  readonly badges?: ComponentChildren;
  readonly buttons?: ComponentChildren;
  /** Below the badges. */
  readonly children?: ComponentChildren;
}

export function Answer({ headline, badge, detail, badges, buttons, children }: Props) {
  const [first, rest] = splitHeadline(headline);
  return (
    <section class="result">
      <h2 class="answer">{first}</h2>
      {rest && <p class="measure more">{rest}</p>}
      {detail}
      <ul class="badges">
        {badge && (
          <li class={`badge tone-${badge.tone}`}>
            <Icon name={badge.icon} />
            {badge.text}
          </li>
        )}
        {badges}
        {buttons}
      </ul>
      {children}
    </section>
  );
}
