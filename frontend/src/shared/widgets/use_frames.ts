// Draws the rows of a table over several frames, so that no frame takes long.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const ROWS_PER_FRAME = 5;

/** The rows to draw now. In each frame some new ones replace those from before, so that the table keeps its height. */
export function useFrames<T>(rows: readonly T[]): readonly T[] {
  const [, redraw] = useState({});
  const latest = useRef<{ readonly rows: readonly T[]; readonly drawn: readonly T[]; readonly ready: number }>({ rows: [], drawn: [], ready: 0 });
  const advance = (ready: number) => (latest.current = { rows, drawn: mixed(rows, ready, latest.current.drawn), ready });
  if (latest.current.rows !== rows) advance(0); // in the frame in which the rest of the page changes too
  const { drawn, ready } = latest.current;
  useLayoutEffect(() => {
    if (ready >= rows.length) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // The next animation frame still belongs to what was drawn now; after it the page is free again.
    const frame = requestAnimationFrame(() => {
      timer = setTimeout(() => (advance(ready + ROWS_PER_FRAME), redraw({})));
    });
    return () => (cancelAnimationFrame(frame), clearTimeout(timer));
  }, [rows, ready]);
  return drawn;
}

/** The first `ready` rows, then those that were there before. */
export function mixed<T>(rows: readonly T[], ready: number, before: readonly T[]): readonly T[] {
  return ready >= rows.length ? rows : [...rows.slice(0, ready), ...before.slice(ready, rows.length)];
}
