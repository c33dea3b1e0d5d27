// The stretch of time that is seen, and how it moves. Pure arithmetic; times in ns on the recording's own clock.

export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** Closer than this there is nothing to see: clocks of devices tick in some tens of ns. */
export const CLOSEST_NS = 200;

export const lengthOf = ({ begin, end }: Span): number => end - begin;

/** The span moved and shortened so that it lies within the whole. */
export function kept(span: Span, whole: Span): Span {
  const length = Math.min(Math.max(lengthOf(span), CLOSEST_NS), Math.max(lengthOf(whole), CLOSEST_NS));
  const begin = Math.min(Math.max(span.begin, whole.begin), Math.max(whole.end - length, whole.begin));
  return { begin, end: begin + length };
}

/** Longer by a factor (shorter where it is below 1), the time at `anchor` (0 left edge, 1 right edge) staying put. */
export function zoomed(span: Span, factor: number, anchor: number, whole: Span): Span {
  const length = Math.min(Math.max(lengthOf(span) * factor, CLOSEST_NS), lengthOf(whole));
  const begin = span.begin + (lengthOf(span) - length) * anchor;
  return kept({ begin, end: begin + length }, whole);
}

/** Moved by a part of its own length. */
export function moved(span: Span, part: number, whole: Span): Span {
  const by = lengthOf(span) * part;
  return kept({ begin: span.begin + by, end: span.end + by }, whole);
}

/** So that the occurrence is in the middle and its surroundings are seen. */
export function around(occurrence: Span, whole: Span): Span {
  const margin = Math.max(lengthOf(occurrence) * 1.5, CLOSEST_NS * 5);
  return kept({ begin: occurrence.begin - margin, end: occurrence.end + margin }, whole);
}

/** What a key press makes of the span, or undefined where this key does not move it. */
export function pressed(key: string, span: Span, whole: Span): Span | undefined {
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
      return kept({ begin: whole.begin, end: whole.begin + lengthOf(span) }, whole);
    case "End":
      return kept({ begin: whole.end - lengthOf(span), end: whole.end }, whole);
    case "0":
      return whole;
    default:
      return undefined;
  }
}

const NICE = [1, 2, 5, 10];

/** Where the ruler is marked: round numbers of ns from `origin` on, at most `most` of them. */
export function ticks(span: Span, origin: number, most: number): readonly number[] {
  const rough = lengthOf(span) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (NICE.find((nice) => nice * power >= rough) ?? 10) * power;
  const first = Math.ceil((span.begin - origin) / step);
  const last = Math.floor((span.end - origin) / step);
  return Array.from({ length: Math.max(0, Math.min(last - first + 1, most * 2)) }, (_, index) => origin + (first + index) * step);
}
