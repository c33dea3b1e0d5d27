// A block of code that can be copied.
import { useEffect, useState } from "preact/hooks";
import { copyText } from "../clipboard";
import { Icon } from "./icon";

const CONFIRMATION_MS = 1_600;

export function Code({ text, label }: { text: string; label: string }) {
  const [said, say] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => say(""), CONFIRMATION_MS);
    return () => clearTimeout(timer);
  }, [said]);

  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <button
        type="button"
        class="copy"
        aria-label={`Copy: ${label}`}
        onClick={async () => say((await copyText(text)) ? "Copied" : "Select and copy by hand")}
      >
        <Icon name={said === "Copied" ? "check" : "copy"} />
        <span aria-live="polite">{said || "Copy"}</span>
      </button>
    </div>
  );
}
