// Icons beside text. They are decorative and hidden from screen readers.
import type { IconName } from "../text/vocabulary";

const PATHS: Readonly<Record<IconName, string>> = {
  critical: "M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2zM8 4.4v4.4M8 11.1v.5",
  warning: "M8 1.8 14.8 14H1.2zM8 6.2v3.9M8 11.7v.5",
  info: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM8 7.2v4.2M8 4.5v.5",
  check: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM5 8.2l2.2 2.2L11.2 6",
  question: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM6.1 6.3a1.9 1.9 0 1 1 2.8 1.7c-.6.3-.9.7-.9 1.3M8 11.2v.5",
  cross: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  share: "M8 9.5v-8M5 4l3-2.8L11 4M4 7H2.5v7.5h11V7H12",
  open: "M3.5 6l4.5 4.5L12.5 6",
  dot: "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z",
};

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
