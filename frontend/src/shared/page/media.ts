// How much room there is, as long as a view is shown.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** Whether a media query holds. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const list = window.matchMedia(query);
    const update = () => setHolds(list.matches);
    update();
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return holds;
}

/** How wide an element is, px; `usual` until it is known. What is drawn that wide has letters of their own size. */
export function useWidth(element: { readonly current: Element | null }, usual: number): number {
  const [width, setWidth] = useState(usual);
  useLayoutEffect(() => {
    if (!element.current) return undefined;
    const resized = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) setWidth(Math.round(entry.contentRect.width));
    });
    resized.observe(element.current);
    return () => resized.disconnect();
  }, []);
  return width;
}
