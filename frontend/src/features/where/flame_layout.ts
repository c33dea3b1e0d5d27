// The rectangles of the flame graph: the chosen node and those above it over the whole width, those below by their values.
import { ROOT, type Model, type Node } from "./model";
import type { Metric } from "./options";

export const ROW = 22; // px

export interface Rectangle {
  readonly node: Node;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const MIN_WIDTH = 0.6; // px

/** What the width shows: the value, or of two recordings the sum of both, so that what disappeared is visible too. */
export const widthOf = (model: Model, node: Node, metric: Metric): number => model.value(node, metric) + model.before(node, metric);

export function rectangles(model: Model, top: Node, metric: Metric, width: number): readonly Rectangle[] {
  const result: Rectangle[] = [];
  const above = top === ROOT ? [] : [ROOT, ...model.above(top)];
  above.forEach((node, row) => result.push({ node, x: 0, y: row * ROW, width }));
  const scale = width / Math.max(widthOf(model, top, metric), 1e-9);
  const add = (node: Node, x: number, row: number) => {
    const own = widthOf(model, node, metric) * scale;
    if (own < MIN_WIDTH) return;
    result.push({ node, x, y: row * ROW, width: own });
    let at = x;
    for (const child of model.children(node, metric)) {
      add(child, at, row + 1);
      at += widthOf(model, child, metric) * scale;
    }
  };
  add(top, 0, above.length);
  return result;
}

export const heightOf = (all: readonly Rectangle[]): number => all.reduce((bottom, { y }) => Math.max(bottom, y + ROW), ROW);

export function rectangleAt(all: readonly Rectangle[], x: number, y: number): Rectangle | undefined {
  return all.find((each) => y >= each.y && y < each.y + ROW && x >= each.x && x < each.x + each.width);
}
