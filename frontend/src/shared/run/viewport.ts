// The visible range of time and how it moves. Pure arithmetic; times in ns on the recording's own clock.

export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** The shortest visible range: device clocks have a resolution of some tens of ns. */
export const SHORTEST_NS = 200;

export const lengthOf = ({ begin, end }: Span): number => end - begin;

/** The span, moved and shortened to lie within the whole. */
export function clamped(span: Span, whole: Span): Span {
  const length = Math.min(Math.max(lengthOf(span), SHORTEST_NS), Math.max(lengthOf(whole), SHORTEST_NS));
  const begin = Math.min(Math.max(span.begin, whole.begin), Math.max(whole.end - length, whole.begin));
  return { begin, end: begin + length };
}

/** The span scaled by a factor. The time at `anchor` (0 left edge, 1 right edge) keeps its place. */
export function zoomed(span: Span, factor: number, anchor: number, whole: Span): Span {
  const length = Math.min(Math.max(lengthOf(span) * factor, SHORTEST_NS), lengthOf(whole));
  const begin = span.begin + (lengthOf(span) - length) * anchor;
  return clamped({ begin, end: begin + length }, whole);
}

/** The span moved by a fraction of its length. */
export function moved(span: Span, fraction: number, whole: Span): Span {
  const by = lengthOf(span) * fraction;
  return clamped({ begin: span.begin + by, end: span.end + by }, whole);
}

/** A span with the occurrence in its middle and some context on both sides. */
export function withContext(occurrence: Span, whole: Span): Span {
  const margin = Math.max(lengthOf(occurrence) * 1.5, SHORTEST_NS * 5);
  return clamped({ begin: occurrence.begin - margin, end: occurrence.end + margin }, whole);
}

/** The span after a key press, or undefined if this key does not move it. */
export function spanAfterKey(key: string, span: Span, whole: Span): Span | undefined {
  switch (key) {
    case "ArrowLeft":
      return moved(span, -0.2, whole);
    case "ArrowRight":
      return moved(span, 0.2, whole);
    case "PageUp":
      return moved(span, -0.9, whole);
    case "PageDown":
      return moved(span, 0.9, whole);
    case "+":
    case "=":
    case "ArrowUp":
      return zoomed(span, 1 / 1.6, 0.5, whole);
    case "-":
    case "ArrowDown":
      return zoomed(span, 1.6, 0.5, whole);
    case "Home":
      return clamped({ begin: whole.begin, end: whole.begin + lengthOf(span) }, whole);
    case "End":
      return clamped({ begin: whole.end - lengthOf(span), end: whole.end }, whole);
    case "0":
      return whole;
    default:
      return undefined;
  }
}

const NICE = [1, 2, 5, 10];

/** The ticks of the ruler: round numbers of ns counted from `origin`, about `limit` of them. */
export function ticks(span: Span, origin: number, limit: number): readonly number[] {
  const rough = lengthOf(span) / Math.max(limit, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (NICE.find((nice) => nice * power >= rough) ?? 10) * power;
  const first = Math.ceil((span.begin - origin) / step);
  const last = Math.floor((span.end - origin) / step);
  return Array.from({ length: Math.max(0, Math.min(last - first + 1, limit * 2)) }, (_, index) => origin + (first + index) * step);
}
