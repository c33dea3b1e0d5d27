// Keeps the focus near where it was when the thing that had it goes away: without it the next Tab starts the page anew.
import { useEffect, useRef } from "preact/hooks";

/** To be used by the page: after each drawing, a focus that was lost goes to the panel of what is shown. */
export function useKeptFocus(): void {
  const last = useRef<Element | null>(null);
  useEffect(() => {
    const remember = ({ target }: FocusEvent) => {
      last.current = target instanceof Element ? target : null;
    };
    document.addEventListener("focusin", remember);
    return () => document.removeEventListener("focusin", remember);
  }, []);
  useEffect(() => {
    if (!last.current || last.current.isConnected || document.activeElement !== document.body) return;
    const panel = document.getElementById("panel"); // where it is not drawn yet, a later drawing looks again
    panel?.focus({ preventScroll: true });
  });
}
