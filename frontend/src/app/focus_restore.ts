// Keeps the keyboard focus on the page when the element that has it is removed. Without it, Tab would start at the top.
import { useEffect, useRef } from "preact/hooks";

/** After each render, a lost focus moves to the panel of the current view, that of a tab to the selected tab. */
export function useFocusRestore(): void {
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
    const successor = document.querySelector<HTMLElement>(last.current.matches("[role=tab]") ? "[role=tab][aria-selected=true]" : "#panel");
    successor?.focus({ preventScroll: true }); // if it is not drawn yet, a later render finds it
  });
}
