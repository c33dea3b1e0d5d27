// A button that copies a text to the clipboard and shows whether the browser allowed it.
import { copyText } from "../page/clipboard";
import { Icon } from "./icon";
import { useTemporaryMessage } from "./temporary_message";

interface Props {
  readonly text: () => string; // computed on click
  readonly title: string;
  readonly label?: string; // for screen readers, if the title does not name what is copied
}

export function CopyButton({ text, title, label }: Props) {
  const [message, setMessage] = useTemporaryMessage();
  return (
    <button
      type="button"
      class="small copy"
      aria-label={label}
      onClick={async () => setMessage((await copyText(text())) ? "Copied" : "The browser does not allow copying")}
    >
      <Icon name={message === "Copied" ? "check" : "copy"} /> <span aria-live="polite">{message || title}</span>
    </button>
  );
}
