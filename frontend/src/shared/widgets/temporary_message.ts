// A message that disappears after a moment: that something was copied, or why it was not.
import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 2_500;

/** The current message ("" if there is none) and its setter. */
export function useTemporaryMessage(): readonly [string, (message: string) => void] {
  const [message, setMessage] = useState("");
  useEffect(() => {
    if (message === "") return undefined;
    const timer = setTimeout(() => setMessage(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [message]);
  return [message, setMessage];
}
