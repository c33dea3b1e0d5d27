// The answer to a question about runs: its first sentence, the rest, badges, and a button that copies it as Markdown.
import type { ComponentChildren } from "preact";
import { splitHeadline } from "../text/names";
import type { Label } from "../text/vocabulary";
import { CopyButton } from "./copy_button";
import { Icon } from "./icon";

interface Props {
  readonly headline: string;
  readonly badge?: Label;
  readonly markdown: () => string;
  /** Between the headline and the badges. */
  readonly detail?: ComponentChildren;
  /** More badges, as list items, before and after the copy button. */
  readonly badges?: ComponentChildren;
  readonly buttons?: ComponentChildren;
  /** Below the badges. */
  readonly children?: ComponentChildren;
}

export function Answer({ headline, badge, markdown, detail, badges, buttons, children }: Props) {
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
        <li>
          <CopyButton text={markdown} title="Copy as Markdown" />
        </li>
        {buttons}
      </ul>
      {children}
    </section>
  );
}
