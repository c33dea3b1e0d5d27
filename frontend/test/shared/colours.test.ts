import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { allColours, colourOf, LABEL_COLOUR } from "../../src/shared/colours";

declare const FRONTEND: string; // set by run.mjs

// Relative luminance and contrast as WCAG 2.2 defines them (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio).
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light! + 0.05) / (dark! + 0.05);
}

test("the contrast is computed as WCAG does", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});

test("labels can be read on every colour (AA, 4.5)", () => {
  for (const colour of allColours) assert.ok(contrast(colour, LABEL_COLOUR) >= 4.5, `${colour} ${contrast(colour, LABEL_COLOUR)}`);
});

test("every colour stands out from the light and the dark page (AA for graphics, 3)", () => {
  for (const page of ["#ffffff", "#303030"]) {
    for (const colour of allColours) assert.ok(contrast(colour, page) >= 3, `${colour} on ${page}: ${contrast(colour, page)}`);
  }
});

test("a regime that the tab does not know has a colour, whatever its name", () => {
  assert.equal(colourOf("constructor"), colourOf("a regime of next year"));
  assert.match(colourOf("__proto__"), /^#[0-9a-f]{6}$/);
});

/** The colours that the style sheet names in this block. */
function theme(selector: string): ReadonlyMap<string, string> {
  const style = readFileSync(path.join(FRONTEND, "src", "shared", "style", "theme.css"), "utf8");
  const block = style.slice(style.indexOf(`${selector} {`)).split("}")[0]!;
  return new Map([...block.matchAll(/--([a-z]+): (#[0-9a-f]{6});/g)].map(([, name, colour]) => [name!, colour!]));
}

for (const selector of [":root", ':root[data-theme="dark"]']) {
  test(`text can be read on every background of ${selector} (AA, 4.5)`, () => {
    const colours = theme(selector);
    for (const ground of ["page", "raised", "sunken", "chosen"]) {
      for (const words of ["text", "muted", "bad", "careful", "note", "good"]) {
        const ratio = contrast(colours.get(words)!, colours.get(ground)!);
        assert.ok(ratio >= 4.5, `${words} on ${ground}: ${ratio.toFixed(2)}`);
      }
      const ring = contrast(colours.get("focus")!, colours.get(ground)!);
      assert.ok(ring >= 3, `the focus ring on ${ground}: ${ring.toFixed(2)}`);
    }
  });
}
