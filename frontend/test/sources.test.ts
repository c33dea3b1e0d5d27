import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

declare const FRONTEND: string; // set by run.mjs

const sources = readdirSync(path.join(FRONTEND, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(ts|tsx|css)$/.test(name))
  .map((name) => ({ name, text: readFileSync(path.join(FRONTEND, "src", name), "utf8") }));

function filesWith(pattern: RegExp): readonly string[] {
  return sources.filter(({ text }) => pattern.test(text)).map(({ name }) => name);
}

test("the sources are found", () => {
  assert.ok(sources.length > 20, `${sources.length}`);
});

test("names from a trace are hostile: no source makes markup out of text", () => {
  assert.deepEqual(filesWith(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser/i), []);
});

test("the tab asks nobody but its own server, and knows one address that a click opens in a window of its own", () => {
  assert.deepEqual(filesWith(/https?:\/\/|url\(|@import|@font-face/), ["features/timeline/perfetto.ts"]);
  const opener = sources.find(({ name }) => name === "features/timeline/perfetto.ts")?.text ?? "";
  assert.deepEqual(opener.match(/https?:\/\/[^"]*/g), ["https://ui.perfetto.dev"]);
  assert.ok(!/fetch|import\(/.test(opener));
});

test("no link leaves the page by a fragment, which the page's <base> would turn into another address", () => {
  assert.deepEqual(filesWith(/<a\b/), []);
});

test("nanoseconds and percent are written in one file only", () => {
  assert.deepEqual(filesWith(/1e6|1e9|\* 100\b|toFixed/), ["shared/text/format.ts"]);
});
