import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { comparedName } from "../../../src/shared/run/keys";

declare const FRONTEND: string; // set by run.mjs

test("a recording has the name that the server uses in comparisons", () => {
  assert.equal(comparedName({ run: "resnet/slow", source: "rank0.pt.trace.json" }), "resnet/slow/rank0.pt.trace.json");
  assert.equal(comparedName({ run: ".", source: "a.json" }), "a.json");
  assert.equal(comparedName({ run: "", source: "a.json" }), "a.json");
  const contract = readFileSync(path.join(FRONTEND, "../tb_bottleneck/plugin/http_api.md"), "utf8");
  assert.match(contract, /`RUN\/SOURCE`, or\s+`SOURCE` for a recording in the logdir itself/);
});
