// A block of code with a copy button.
import { CopyButton } from "./copy_button";

export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre>
        <code>
          {text.split("\n").map((line, index) => (
            <span key={index}>{`${line}\n`}</span>
          ))}
        </code>
      </pre>
      <CopyButton text={() => text} title="Copy" label={`Copy: ${label}`} />
    </div>
  );
}
