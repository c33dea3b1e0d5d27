// A button that puts a text on the clipboard, and says whether the browser let it.
import { copyText } from "../page/clipboard";
import { useSaying } from "./temporary_message";
import { Icon } from "./icon";

interface Props {
  readonly text: () => string; // made when it is wanted
  readonly words: string;
  readonly label?: string; // where the words alone do not say what is copied
}

export function CopyButton({ text, words, label }: Props) {
  const [said, say] = useSaying();
  return (
    <button type="button" class="small copy" aria-label={label} onClick={async () => say((await copyText(text())) ? "Copied" : "The browser does not allow copying")}>
      <Icon name={said === "Copied" ? "check" : "copy"} /> <span aria-live="polite">{said || words}</span>
    </button>
  );
}
