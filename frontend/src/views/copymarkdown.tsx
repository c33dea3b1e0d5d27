// A button that copies what is shown as Markdown.
import { useEffect, useState } from "preact/hooks";
import { copyText } from "../clipboard";
import { Icon } from "./icon";

const SAID_MS = 2_500;

export function CopyMarkdown({ markdown }: { markdown: () => string }) {
  const [said, say] = useState("");
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => say(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button type="button" class="small copy" onClick={async () => say((await copyText(markdown())) ? "Copied" : "The browser did not allow copying")}>
      <Icon name={said === "Copied" ? "check" : "copy"} /> <span aria-live="polite">{said || "Copy as Markdown"}</span>
    </button>
  );
}
