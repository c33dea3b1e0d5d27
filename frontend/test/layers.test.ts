import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

declare const FRONTEND: string; // set by run.mjs

const SRC = path.join(FRONTEND, "src");

/** Imports between features, each with its reason. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  compare: ["series"], // the Compare view shows either two recordings or a series
};

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"));

/** The file that a relative import means, or undefined for a style sheet. */
function resolved(from: string, specifier: string): string | undefined {
  const base = path.join(path.dirname(from), specifier);
  const file = [`${base}.ts`, `${base}.tsx`].find((name) => files.includes(name));
  assert.ok(file !== undefined || base.endsWith(".css"), `${from} imports ${specifier}`);
  return file;
}

/** Static, type-only and dynamic imports. */
const imports = new Map(
  files.map((file) => {
    const text = readFileSync(path.join(SRC, file), "utf8");
    const specifiers = [...text.matchAll(/(?:from |import |import\()"(\.[^"]+)"/g)].map(([, specifier]) => specifier!);
    return [file, specifiers.flatMap((specifier) => resolved(file, specifier) ?? [])] as const;
  }),
);

/** ["app"], ["shared"] or ["features", name]. */
const layerOf = (file: string): readonly string[] => file.split("/").slice(0, file.startsWith("features/") ? 2 : 1);

function isAllowed(from: string, to: string): boolean {
  const [layer, feature] = layerOf(from);
  const [target, otherFeature] = layerOf(to);
  if (layer === "app") return true;
  if (target === "shared") return true;
  return layer === "features" && target === "features" && (feature === otherFeature || (ALLOWED[feature!] ?? []).includes(otherFeature!));
}

test("app imports features and shared, features import shared, shared imports nothing above it", () => {
  const upward = [...imports].flatMap(([from, targets]) => targets.filter((to) => !isAllowed(from, to)).map((to) => `${from} -> ${to}`));
  assert.ok(files.length > 80);
  assert.deepEqual(upward, []);
});

test("no two files import each other, directly or through others", () => {
  const done = new Set<string>();
  const visit = (file: string, chain: readonly string[]): void => {
    assert.ok(!chain.includes(file), [...chain.slice(chain.indexOf(file)), file].join(" -> "));
    if (done.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...chain, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});

test("the allowed imports between features exist", () => {
  for (const [feature, others] of Object.entries(ALLOWED)) {
    const targets = [...imports].filter(([from]) => from.startsWith(`features/${feature}/`)).flatMap(([, to]) => to);
    for (const other of others) assert.ok(targets.some((to) => to.startsWith(`features/${other}/`)), `${feature} -> ${other}`);
  }
});
