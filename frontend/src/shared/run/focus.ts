// Time ranges in the address, and the range that a piece of evidence marks.
import type { Span } from "./viewport";

/** A marked range of time on the recording's own clock in ns (telemetry: ns since 1970). */
export interface Focus extends Span {
  readonly label: string;
}

/** Parses "begin-end" in whole ns. Returns undefined for anything else. */
export function parseSpan(text: string | undefined): Span | undefined {
  const [, begin, end] = /^(\d{1,19})-(\d{1,19})$/.exec(text ?? "") ?? [];
  return begin !== undefined && end !== undefined && Number(end) > Number(begin) ? { begin: Number(begin), end: Number(end) } : undefined;
}

/** Formats a range as "begin-end" in whole ns; an absent range is "". */
export function formatSpan(span: Span | undefined): string {
  return span ? `${Math.max(0, Math.round(span.begin))}-${Math.max(0, Math.round(span.end))}` : "";
}
