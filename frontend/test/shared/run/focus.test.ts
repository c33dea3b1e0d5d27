import assert from "node:assert/strict";
import { test } from "node:test";
import { formatSpan, parseSpan } from "../../../src/shared/run/focus";
import { viewNamed } from "../../../src/shared/run/views";

test("a range of time is parsed, and invalid text is not", () => {
  assert.deepEqual(parseSpan(formatSpan({ begin: 1419116235798217, end: 1419116235852418 })), { begin: 1419116235798217, end: 1419116235852418 });
  assert.equal(formatSpan(undefined), "");
  for (const text of [undefined, "", "5", "9-5", "5-5", "-5-9", "a-b", "1e3-1e4", "5-9-7"]) assert.equal(parseSpan(text), undefined, text);
});

test("an unknown view is the diagnosis", () => {
  assert.equal(viewNamed("nonsense"), "diagnosis");
  assert.equal(viewNamed("live"), "live");
});
