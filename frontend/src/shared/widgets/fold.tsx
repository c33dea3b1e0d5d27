// A part of a page that is closed at first.
import type { ComponentChildren } from "preact";

export function Fold({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>{title}</summary>
      <div class="folded">{children}</div>
    </details>
  );
}
