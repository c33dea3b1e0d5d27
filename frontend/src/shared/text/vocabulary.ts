// The contract's words as people say them, with a symbol each. A word that is not here is shown as it came.
import { title, words } from "./names";
import type { IconName } from "../widgets/icon";

export interface Said {
  readonly text: string;
  readonly icon: IconName;
  readonly tone: "bad" | "careful" | "note" | "good" | "plain";
}

const SEVERITY: ReadonlyMap<string, Said> = new Map<string, Said>([
  ["critical", { text: "Critical", icon: "critical", tone: "bad" }],
  ["warning", { text: "Worth mending", icon: "warning", tone: "careful" }],
  ["info", { text: "Minor", icon: "info", tone: "note" }],
  ["none", { text: "Little to win back", icon: "check", tone: "good" }],
]);

const HEALTH: ReadonlyMap<string, Said> = new Map<string, Said>([
  ["ok", { text: "Sound recording", icon: "check", tone: "plain" }],
  ["degraded", { text: "Usable with reservations", icon: "warning", tone: "careful" }],
  ["incomplete", { text: "Incomplete", icon: "question", tone: "careful" }],
  ["unreadable", { text: "Unreadable", icon: "cross", tone: "bad" }],
]);

const STATUS: ReadonlyMap<string, Said> = new Map<string, Said>([
  ["fires", { text: "Fires", icon: "warning", tone: "careful" }],
  ["clear", { text: "Clear", icon: "check", tone: "good" }],
  ["abstains", { text: "Cannot tell", icon: "question", tone: "note" }],
  ["broken", { text: "Check failed", icon: "cross", tone: "bad" }],
]);

const BASIS: ReadonlyMap<string, string> = new Map([
  ["profiler_step", "marked by prof.step()"],
  ["inferred", "inferred from the rhythm"],
  ["whole", "the whole recording as one"],
  ["step_clock", "timed by the monitor, without a profiler"],
]);

const WITNESS: ReadonlyMap<string, string> = new Map([
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
  ["read", "a value to come to the host"],
  ["upload", "a copy to the device"],
  ["shape", "a size that only the device knows"],
  ["explicit", "the device, on request"],
  ["other", "the device"],
]);

const ROOF: ReadonlyMap<string, string> = new Map([
  ["compute", "arithmetic"],
  ["memory", "bandwidth"],
  ["underfilled", "its own smallness"],
  ["communication", "the other ranks"],
  ["transfer", "the link"],
  ["unexplained", "not known"],
]);

const otherwise = (word: string): Said => ({ text: title(word), icon: "dot", tone: "plain" });

export const severity = (word: string): Said => SEVERITY.get(word) ?? otherwise(word);
export const health = (word: string): Said => HEALTH.get(word) ?? otherwise(word);
export const status = (word: string): Said => STATUS.get(word) ?? otherwise(word);
export const basis = (word: string): string => BASIS.get(word) ?? words(word);
export const witness = (word: string): string => WITNESS.get(word) ?? words(word);
export const reason = (word: string): string => REASON.get(word) ?? words(word);
export const wait = (word: string): string => WAIT.get(word) ?? words(word);
export const roof = (word: string): string => ROOF.get(word) ?? words(word);
export const confidence = (word: string): string => `${title(word)} confidence`;

/** What stands in the place of a verdict, by the recording's health. */
export const noVerdict = (word: string): string => NO_VERDICT.get(word) ?? "There is no verdict.";

/** Why a recording has no verdict, in short: its health, and the first reason where that says more. */
export function withoutVerdict(status: string, code: string): string {
  const state = health(status).text.toLowerCase();
  return code && reason(code) !== state ? `${state}: ${reason(code)}` : state;
}
