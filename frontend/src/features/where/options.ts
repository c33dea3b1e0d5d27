// What the breakdown shows, as one text of the address: "by=line&merged=1".
import type { Place } from "../../shared/report";
import type { Key } from "../../shared/run/keys";

export const GROUPINGS = ["module", "line", "operator", "range", "kernel", "communication"] as const;
export type By = (typeof GROUPINGS)[number];

export const METRICS = ["time", "device", "host", "wait", "bytes", "flops", "memory"] as const;
export type Metric = (typeof METRICS)[number];

export interface Options {
  readonly by: By;
  readonly metric: Metric; // orders the rows, and is the width in the flame graph
  readonly merged: boolean;
  readonly flame: boolean;
  readonly find: string;
  readonly device?: number;
  readonly first?: number;
  readonly last?: number;
  readonly against?: Key; // the recording to show the difference from
}

export const DEFAULT: Options = { by: "module", metric: "time", merged: false, flame: false, find: "" };

export function parseOptions(text: string | undefined): Options {
  const given = new URLSearchParams(text ?? "");
  const number = (name: string) => (/^\d{1,8}$/.test(given.get(name) ?? "") ? { [name]: Number(given.get(name)) } : {});
  return {
    by: GROUPINGS.find((by) => by === given.get("by")) ?? DEFAULT.by,
    metric: METRICS.find((metric) => metric === given.get("metric")) ?? DEFAULT.metric,
    merged: given.get("merged") === "1",
    flame: given.get("flame") === "1",
    find: given.get("find") ?? "",
    ...number("device"),
    ...number("first"),
    ...number("last"),
    ...(given.get("against") ? { against: given.get("against")! } : {}),
  };
}

/** What shows a place of the program. */
export function optionsOf({ file, line, function: name, module, block, exact }: Place): Options {
  if (file && exact) return { ...DEFAULT, by: "line", find: `${file}:${line}` };
  if (file) return { ...DEFAULT, by: "line", find: line ? `${file}(${line}): ${name}` : `${file}: ${name}` };
  return block ? { ...DEFAULT, by: "range", find: block } : { ...DEFAULT, find: module, merged: module.includes("*") };
}

/** The text of the address; "" for the default. */
export function formatOptions(options: Options): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && value !== DEFAULT[name as keyof Options]) text.set(name, value === true ? "1" : String(value));
  }
  return text.toString();
}

/** The parameters of the route, without the recording; `other` is the id of the recording to compare with. */
export function requestOf({ by, merged, device, first, last }: Options, other: string | undefined): string {
  const parameters = new URLSearchParams({ by });
  if (merged) parameters.set("merged", "1");
  if (device !== undefined) parameters.set("device", String(device));
  if (first !== undefined) parameters.set("first", String(first));
  if (last !== undefined) parameters.set("last", String(last));
  if (other !== undefined) parameters.set("with", other);
  return parameters.toString();
}
