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

test("names from a trace are untrusted: no source creates markup from text", () => {
  assert.deepEqual(filesWith(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser/i), []);
});

test("the tab requests only its own server, and contains one address that a click opens in a new window", () => {
  assert.deepEqual(filesWith(/https?:\/\/|url\((?!#)|@import|@font-face/), ["features/timeline/perfetto.ts"]);
  const opener = sources.find(({ name }) => name === "features/timeline/perfetto.ts")?.text ?? "";
  assert.deepEqual(opener.match(/https?:\/\/[^"]*/g), ["https://ui.perfetto.dev"]);
  assert.ok(!/fetch|import\(/.test(opener));
});

test("the only link is to the documentation of a fix: an https address, which the page's <base> does not change", () => {
  assert.deepEqual(filesWith(/<a\b/), ["shared/widgets/finding_card.tsx"]);
  const card = sources.find(({ name }) => name === "shared/widgets/finding_card.tsx")?.text ?? "";
  assert.deepEqual(card.match(/<a\b[^>]*>/g), ['<a href={url} target="_blank" rel="noopener noreferrer">']);
  assert.ok(card.includes("/^https:\\/\\/[a-z0-9.-]+\\//.test(url)"));
});

test("nanoseconds and percent are formatted in one file only", () => {
  assert.deepEqual(filesWith(/1e6|1e9|\* 100\b|toFixed/), ["shared/text/format.ts"]);
});
