import assert from "node:assert/strict";
import { test } from "node:test";
import { jobMarkdown } from "../../../src/features/job/markdown";
import { placeOf, ranksText } from "../../../src/features/job/words";
import { viewNamed } from "../../../src/shared/run/views";
import { answer, culprit, job } from "./jobs";

test("the action leads, then the cause and the fixes", () => {
  const lines = jobMarkdown(answer()).split("\n");
  assert.equal(lines[0], "## Speed up the data loader of rank 2: about 1.25× faster");
  assert.equal(lines[2], "The others wait for rank 2.");
  assert.ok(lines.includes("### Speed up the data loader of rank 2"));
});

test("names cannot become markup", () => {
  const group = { name: "<b>", kind: "<img>", ranks: [0, 1], count: 2, wait_share: 0.1, wire_share: 0.1, bus_gbps: 0, transfers: [] };
  assert.ok(!jobMarkdown(answer({ job: job({ groups: [group] }) })).includes("<img>"));
});

test("the figures of all ranks, and why samples are not summed", () => {
  const note = (field: string, title: string, unit: string, fields: object) => ({ field, title, unit, definition: "", basis: "", because: "", ...fields });
  const notes = [note("mfu", "MFU", "share", { basis: "of all ranks" }), note("samples_per_second", "Samples per second", "per_second", { because: "groups unknown" }), note("goodput", "Goodput", "share", { because: "no" })];
  const markdown = jobMarkdown(answer({ job: job({ efficiency: { mfu: 0.41, types: [], samples_basis: "", notes } }) }));
  assert.ok(markdown.includes("- MFU: 41 % (of all ranks)"), markdown);
  assert.ok(markdown.includes("\n\nSamples per second is not known: groups unknown.\n"), markdown);
});

test("ranks are named as ranges", () => {
  assert.equal(ranksText([3]), "rank 3");
  assert.equal(ranksText([0, 1, 2, 5]), "ranks 0–2, 5");
  assert.equal(ranksText([0, 2, 4, 6, 8, 10, 12, 14]), "ranks 0, 2, 4, 6, 8, 10 and others, 8 in total");
  assert.equal(placeOf({ ...culprit, ranks: [0, 1, 2, 3] }, 4), "All ranks");
  assert.equal(placeOf({ ...culprit, ranks: [2, 3], host: 2 }, 4), "Ranks 2–3, host 2");
});

test("addresses of the view that the job replaced still work", () => {
  assert.equal(viewNamed("ranks"), "job");
  assert.equal(viewNamed("job"), "job");
  assert.equal(viewNamed("constructor"), "diagnosis");
});
