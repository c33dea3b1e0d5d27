// Hooks that follow media queries and the width of an element.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** Returns true while a media query matches. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const list = window.matchMedia(query);
    const update = () => setMatches(list.matches);
    update();
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return matches;
}

/** The height of the visible part of the page in px, without that of a hidden tab. */
export function useWindowHeight(): number {
  const [height, setHeight] = useState(window.innerHeight);
  useEffect(() => {
    const update = () => window.innerHeight > 0 && setHeight(window.innerHeight);
    window.addEventListener("resize", update);
    return () => window.removeEventListener("resize", update);
  }, []);
  return height;
}

/** The width of an element in px; `initial` until it is known. A drawing of this width needs no scaling. */
export function useWidth(element: { readonly current: Element | null }, initial: number): number {
  const [width, setWidth] = useState(initial);
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
