// Words that are shown for a moment: that something was copied, or why it was not.
import { useEffect, useState } from "preact/hooks";

const SAID_MS = 2_500;

/** What is said now, empty where nothing is, and what says something else. */
export function useSaying(): readonly [string, (words: string) => void] {
  const [said, say] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => say(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return [said, say];
}
