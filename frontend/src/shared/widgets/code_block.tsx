// A block of code that can be copied.
import { CopyButton } from "./copy_button";

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={() => text} words="Copy" label={`Copy: ${label}`} />
    </div>
  );
}
