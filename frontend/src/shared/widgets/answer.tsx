// The answer to a question about runs: its first sentence, the rest, badges, and the copy of it as Markdown.
import type { ComponentChildren } from "preact";
import { parted } from "../../features/compare/summary";
import { CopyButton } from "./copy_button";
import { Icon } from "./icon";

interface Props {
  readonly headline: string;
  readonly badge: { readonly text: string; readonly icon: Parameters<typeof Icon>[0]["name"]; readonly tone: string };
  readonly markdown: () => string;
  /** Further badges, as list items. */
  readonly badges?: ComponentChildren;
  /** What stands below. */
  readonly children?: ComponentChildren;
}

export function Answer({ headline, badge, markdown, badges, children }: Props) {
  const [first, more] = parted(headline);
  return (
    <section class="outcome-of-both">
      <h2 class="answer">{first}</h2>
      {more && <p class="measure more">{more}</p>}
      <ul class="badges">
        <li class={`badge tone-${badge.tone}`}>
          <Icon name={badge.icon} />
          {badge.text}
        </li>
        {badges}
        <li>
          <CopyButton text={markdown} words="Copy as Markdown" />
        </li>
      </ul>
      {children}
    </section>
  );
}
