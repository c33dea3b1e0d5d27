import assert from "node:assert/strict";
import { test } from "node:test";
import { heightOf, rectangleAt, rectangles, ROW } from "../../../src/features/where/flame_layout";
import { Model, openAtFirst, ROOT, rowsOf, search } from "../../../src/features/where/model";
import { rowName } from "../../../src/features/where/labels";
import { findingsOf } from "../../../src/features/where/node_details";
import { DEFAULT, formatOptions, optionsOf, parseOptions, requestOf } from "../../../src/features/where/options";
import type { Place, Report, Tree } from "../../../src/shared/report";
import { place } from "../../recordings";

// root > Net > (a, b), root > outside, Net > rest
const NAMES = ["", "Net", "outside of modules", "layers.0", "layers.1", "2 more"];
const TIMES = [100, 80, 20, 50, 20, 10];

function tree(times: readonly number[] = TIMES, steps = 1): Tree {
  const zeros = NAMES.map(() => 0);
  return {
    by: "module",
    window_ns: 100,
    steps,
    steps_recorded: steps,
    parent: [-1, 0, 0, 1, 1, 1],
    kinds: ["module", "outside", "rest", "root"],
    kind: [3, 0, 1, 0, 0, 2],
    name: NAMES,
    regimes: [
      { regime: "compute", title: "Compute", ns: times.map((time) => time / 2) },
      { regime: "launch", title: "Launch overhead", ns: times.map((time) => time / 2) },
    ],
    device_ns: times,
    host_ns: zeros,
    wait_ns: zeros,
    backward_ns: zeros,
    moved_bytes: zeros,
    flops: zeros,
    allocated_bytes: zeros,
    bounded_ns: zeros,
    ideal_ns: zeros,
    calls: NAMES.map(() => 1),
    begin_ns: zeros,
    end_ns: [0, 5, 0, 3, 3, 0],
    device: 0,
    devices: [],
    notes: [],
    nodes_left_out: 0,
  };
}

test("values are per step, and what a node has of its own is without its children", () => {
  const model = new Model(tree(TIMES, 2));
  assert.equal(model.value(ROOT, "time"), 50);
  assert.equal(model.own(1, "time"), 0);
  assert.equal(model.own(3, "time"), 25);
  assert.equal(model.share(1, "time"), 0.8);
  assert.deepEqual(model.regimes(3).map(({ regime, ns }) => [regime, ns]), [["compute", 12.5], ["launch", 12.5]]);
  assert.deepEqual(model.longest(1), { begin: 0, end: 5 });
  assert.equal(model.longest(2), undefined);
});

test("children are in descending order, and the rest is last", () => {
  const model = new Model(tree([100, 80, 20, 20, 15, 45]));
  assert.deepEqual(model.children(1, "time"), [3, 4, 5]);
  assert.deepEqual(rowsOf(model, new Set([ROOT]), "time"), [0, 1, 2]);
  assert.deepEqual(rowsOf(model, new Set([ROOT, 1]), "time"), [0, 1, 3, 4, 5, 2]);
  assert.deepEqual([...openAtFirst(model, "time")], [0, 1]);
});

test("two recordings are ordered by their difference", () => {
  const model = new Model(tree([100, 70, 30, 30, 30, 10]), tree([100, 90, 10, 35, 50, 5]));
  assert.equal(model.change(4, "time"), -20);
  assert.deepEqual(model.children(1, "time"), [4, 3, 5]);
});

test("a search finds names in any case, with what is above and below", () => {
  const model = new Model(tree());
  const found = search(model, "LAYERS.1")!;
  assert.deepEqual([[...found.nodes], [...found.open], found.outermost], [[4], [0, 1], [4]]);
  assert.deepEqual(rowsOf(model, found.open, "time", found), [0, 1, 4]);
  assert.deepEqual(search(model, "net")!.outermost, [1]);
  assert.ok(search(model, "net")!.shown.has(3), "what is below a match can be opened");
  assert.equal(search(model, "  "), undefined);
  assert.equal(search(model, "more")!.nodes.size, 0);
});

test("rectangles fill the width of their parents", () => {
  const model = new Model(tree());
  const all = rectangles(model, ROOT, "time", 200);
  assert.deepEqual(all.map(({ node, x, y, width }) => [node, x, y / ROW, width]), [[0, 0, 0, 200], [1, 0, 1, 160], [3, 0, 2, 100], [4, 100, 2, 40], [5, 140, 2, 20], [2, 160, 1, 40]]);
  assert.equal(heightOf(all), 3 * ROW);
  assert.equal(rectangleAt(all, 110, 2 * ROW + 3)?.node, 4);
  assert.equal(rectangleAt(all, 190, 2 * ROW + 3), undefined);
  assert.deepEqual(rectangles(model, 3, "time", 200).map(({ node, width }) => [node, width]), [[0, 200], [1, 200], [3, 200]]);
});

test("of two recordings, the width is the sum, so that what disappeared is visible", () => {
  const model = new Model(tree([50, 50, 0, 50, 0, 0]), tree([50, 0, 50, 0, 0, 0]));
  assert.deepEqual(rectangles(model, ROOT, "time", 100).filter(({ y }) => y === ROW).map(({ node, width }) => [node, width]), [[1, 50], [2, 50]]);
});

test("options survive the address", () => {
  const options = { ...DEFAULT, by: "line", metric: "host", merged: true, flame: true, find: "a & b=c", device: 1, first: 2, last: 3, against: "r/x.json" } as const;
  assert.deepEqual(parseOptions(formatOptions(options)), options);
  assert.equal(formatOptions(DEFAULT), "");
  assert.deepEqual(parseOptions("by=nothing&metric=&first=-1&device=1e9"), DEFAULT);
  assert.equal(requestOf(options, "7f"), "by=line&merged=1&device=1&first=2&last=3&with=7f");
});

const PLACE = place({ file: "train.py", line: 12, function: "step", module: "layers.1", share: 1 });

test("a place leads to its function, its range or its module", () => {
  assert.deepEqual(optionsOf(PLACE), { ...DEFAULT, by: "line", find: "train.py(12): step" });
  assert.deepEqual(optionsOf({ ...PLACE, exact: true }), { ...DEFAULT, by: "line", find: "train.py:12" });
  assert.equal(optionsOf({ ...PLACE, line: 0 }).find, "train.py: step");
  assert.deepEqual(optionsOf({ ...PLACE, file: "", block: "forward" }), { ...DEFAULT, by: "range", find: "forward" });
  assert.deepEqual(optionsOf({ ...PLACE, file: "" }), { ...DEFAULT, find: "layers.1" });
  assert.deepEqual(optionsOf({ ...PLACE, file: "", module: "layers.*" }), { ...DEFAULT, find: "layers.*", merged: true });
});

test("findings of a node are those that name it, or that spend their time there", () => {
  const finding = (where: readonly Place[]) => ({ cause: "small_kernels", regime: "launch", cost_share: 0.5, evidence: [], title: "Small kernels", where });
  const report = (where: readonly Place[]) => ({ findings: [finding(where)] }) as unknown as Report;
  const model = new Model(tree());
  assert.equal(findingsOf(model, 4, report([PLACE])).length, 1);
  assert.equal(findingsOf(model, 3, report([PLACE])).length, 0, "another module is named");
  assert.equal(findingsOf(model, 3, report([{ ...PLACE, file: "", module: "layers.*" }])).length, 1, "a stack of layers is named");
  assert.equal(findingsOf(model, 3, report([])).length, 1, "half of the launch overhead is in it");
  assert.equal(findingsOf(model, ROOT, report([])).length, 0);
});

test("rows of kernels that begin alike show what differs", () => {
  const kernel = (functor: string) => `void at::native::vectorized_elementwise_kernel<4, at::native::${functor}, at::detail::Array<char*, 2>>`;
  const names = ["", "Net", "Memset", kernel("AddFunctor"), kernel("MulFunctor"), "rest"];
  const model = new Model({ ...tree(), kinds: ["module", "kernel", "rest", "root"], kind: [3, 0, 1, 1, 1, 2], name: names });
  const shown = [1, 2, 3, 4].map((node) => rowName(model, node));
  assert.deepEqual(shown.slice(0, 2), ["Net", "Memset"]);
  assert.match(shown[2]!, /^vectorized_elementwise_kernel…AddFunctor/);
  assert.match(shown[3]!, /^vectorized_elementwise_kernel…MulFunctor/);
});
