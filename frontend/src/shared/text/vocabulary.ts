// Display texts and icons for the words of the report. An unknown word is shown as it is.
import type { Verdict } from "../report";
import { title, words } from "./identifier";
import { leadingAlert } from "./names";

export type IconName = "critical" | "warning" | "info" | "check" | "question" | "cross" | "copy" | "share" | "open" | "dot";

/** A short text with an icon and a tone. */
export interface Label {
  readonly text: string;
  readonly icon: IconName;
  readonly tone: "bad" | "careful" | "note" | "good" | "plain";
}

const SEVERITY: ReadonlyMap<string, Label> = new Map<string, Label>([
  ["critical", { text: "Critical", icon: "critical", tone: "bad" }],
  ["warning", { text: "Worth fixing", icon: "warning", tone: "careful" }],
  ["info", { text: "Small or unknown gain", icon: "info", tone: "note" }],
  ["none", { text: "Little to gain", icon: "check", tone: "good" }],
]);

const NOT_KNOWN: Label = { text: "Not known what would save time", icon: "question", tone: "plain" };

const HEALTH: ReadonlyMap<string, Label> = new Map<string, Label>([
  ["ok", { text: "Complete recording", icon: "check", tone: "plain" }],
  ["degraded", { text: "Usable with limitations", icon: "warning", tone: "careful" }],
  ["incomplete", { text: "Incomplete", icon: "question", tone: "careful" }],
  ["unreadable", { text: "Unreadable", icon: "cross", tone: "bad" }],
]);

const STATUS: ReadonlyMap<string, Label> = new Map<string, Label>([
  ["fires", { text: "Detected", icon: "warning", tone: "careful" }],
  ["clear", { text: "Clear", icon: "check", tone: "good" }],
  ["abstains", { text: "Cannot tell", icon: "question", tone: "note" }],
  ["broken", { text: "Check failed", icon: "cross", tone: "bad" }],
]);

const BASIS: ReadonlyMap<string, string> = new Map([
  ["profiler_step", "marked by prof.step()"],
  ["inferred", "inferred from repetition"],
  ["whole", "the whole recording"],
  ["step_clock", "timed by the monitor, without a profiler"],
]);

const EVIDENCE_SOURCE: ReadonlyMap<string, string> = new Map([
  ["trace", "from the trace"],
  ["telemetry", "from the telemetry"],
  ["both", "from trace and telemetry"],
]);

const NO_VERDICT: ReadonlyMap<string, string> = new Map([
  ["incomplete", "This recording is incomplete, so there is no verdict."],
  ["unreadable", "This file could not be read."],
]);

const REASON: ReadonlyMap<string, string> = new Map([["warmup", "warm-up"]]);

const WAIT: ReadonlyMap<string, string> = new Map([
  ["read", "a value from the device"],
  ["upload", "a copy to the device"],
  ["shape", "a size known only on the device"],
  ["explicit", "the device, on request"],
  ["other", "the device"],
]);

const ROOF: ReadonlyMap<string, string> = new Map([
  ["compute", "arithmetic"],
  ["memory", "bandwidth"],
  ["underfilled", "its small size"],
  ["communication", "the other ranks"],
  ["transfer", "the link"],
  ["unexplained", "unknown"],
]);

const unknown = (word: string): Label => ({ text: title(word), icon: "dot", tone: "plain" });

type Judged = Pick<Verdict, "severity" | "regime" | "memory_alert">;

/** The severity of what leads: the verdict, or a more urgent problem with the memory. */
export const severityWord = (judged: Judged): string => leadingAlert(judged)?.severity ?? judged.severity;

/** True if nothing is known to be wrong, but it is not known that the time is well spent either. */
export const isNotKnown = (judged: Judged): boolean => severityWord(judged) === "none" && judged.regime === "unexplained";

/** The same as a label. Unexplained time is never "good". */
export const severity = (judged: Judged): Label => (isNotKnown(judged) ? NOT_KNOWN : (SEVERITY.get(severityWord(judged)) ?? unknown(severityWord(judged))));
export const health = (word: string): Label => HEALTH.get(word) ?? unknown(word);
export const status = (word: string): Label => STATUS.get(word) ?? unknown(word);
export const basis = (word: string): string => BASIS.get(word) ?? words(word);
/** What a report's step time is: that of telemetry was timed without a profiler, that of a trace with one. */
export const stepTitle = ({ steps, basis: word, recorded_step_ns: recorded }: { steps: number; basis: string; recorded_step_ns?: number }): string =>
  `${steps > 1 ? "Mean step" : "Step"}, ${isUnprofiled(word) ? "without a profiler" : recorded === undefined ? "profiled" : "corrected for the profiler"}`;
const isUnprofiled = (word: string): boolean => word === "step_clock";
export const evidenceSource = (word: string): string => EVIDENCE_SOURCE.get(word) ?? words(word);
export const reason = (word: string): string => REASON.get(word) ?? words(word);
export const wait = (word: string): string => WAIT.get(word) ?? words(word);
export const roof = (word: string): string => ROOF.get(word) ?? words(word);
export const confidence = (word: string): string => `${title(word)} confidence`;

/** Shown instead of a verdict, by the health of the recording and its evidence source. */
export function noVerdict(status: string, source: string): string {
  if (source === "snapshot" && status === "ok") return "A snapshot of the allocator: it shows the memory, and has no times of steps.";
  return NO_VERDICT.get(status) ?? "There is no verdict.";
}

/** Why a recording has no verdict, in short: its health, and the first reason if that adds information. */
export function withoutVerdict(status: string, code: string): string {
  const state = health(status).text.toLowerCase();
  return code && reason(code) !== state ? `${state}: ${reason(code)}` : state;
}
