// The words of the breakdown.
import { bytes, duration, operations } from "../../shared/text/format";
import { distinctNames, kernelName } from "../../shared/text/names";
import type { Model, Node } from "./model";
import type { By, Metric } from "./options";

/** The profiler records the line of a function's def, and no other. */
const FUNCTION = "Function and line";

export const BY_TITLES: Readonly<Record<By, string>> = { module: "Module", line: FUNCTION, operator: "Operator", range: "Range", kernel: "Kernel", communication: "Communication" };

export const METRIC_TITLES: Readonly<Record<Metric, string>> = {
  time: "Time",
  device: "Device time",
  host: "Host time",
  wait: "Waiting",
  bytes: "Bytes moved",
  flops: "FLOPs",
  memory: "Allocated",
};

export const METRIC_HINTS: Readonly<Record<Metric, string>> = {
  time: "Time of the window that belongs to this row and those below it; sums to the account",
  device: "Device operations added up; they may overlap",
  host: "Rows of all host threads added up",
  wait: "Host time in calls that waited for the device",
  bytes: "Copies, and the minimum traffic of operators with recorded shapes",
  flops: "Floating-point operations of operators with recorded shapes",
  memory: "Bytes allocated, freed or not; needs profile_memory=True",
};

export function metricText(metric: Metric, value: number): string {
  if (value === 0) return "–";
  if (metric === "bytes" || metric === "memory") return bytes(value);
  if (metric === "flops") return operations(value);
  return duration(value);
}

/** The name as it is shown: a kernel without common prefixes, a function without the folders of its file. */
export function nodeName(model: Model, node: Node): string {
  if (model.kind(node) === "line") return model.name(node).replace(/^.*[\\/](?=[^\\/]*\.py)/, "");
  return model.kind(node) === "kernel" ? kernelName(model.name(node)) : model.name(node);
}

const kernels = new WeakMap<Model, ReadonlyMap<string, string>>();

/** The same for a row, which has little room: of kernels that begin alike, what differs. */
export function rowName(model: Model, node: Node): string {
  if (model.kind(node) !== "kernel") return nodeName(model, node);
  let names = kernels.get(model);
  if (!names) {
    const nodes = Array.from({ length: model.size }, (_, each) => each);
    names = distinctNames(nodes.filter((each) => model.kind(each) === "kernel").map((each) => model.name(each)));
    kernels.set(model, names);
  }
  return names.get(model.name(node)) ?? nodeName(model, node);
}

const KINDS: Readonly<Record<string, string>> = { line: "function", outside: "", unmapped: "", rest: "", root: "", phase: "" };

/** The kind of a node, or nothing where its name says enough. */
export const kindText = (kind: string): string => KINDS[kind] ?? kind;
