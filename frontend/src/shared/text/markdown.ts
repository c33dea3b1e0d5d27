// Pieces of Markdown. Names in them can never become markup.

import { oneLine } from "./untrusted";

// What GitHub and others turn into links or notifications even if it is escaped: @name, #12, URLs, www. As in untrusted_text.py.
const LIVE = /@(?=\w)|#(?=\d)|:(?=\/\/)|www(?=\.)|GH(?=-\d)/gi;
const BREAK = "\u200b"; // zero-width space

/** Text that Markdown shows literally: no markup, link or mention. */
export function escaped(text: string): string {
  return oneLine(text)
    .replace(LIVE, (live) => `${live}${BREAK}`)
    .replace(/[\\`*_{}[\]<>#|~!&]/g, (character) => `\\${character}`);
}

export const tableRow = (...cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

/** A part with a heading; the parts are Markdown. */
export const section = (title: string, ...parts: readonly string[]): string => [`### ${escaped(title)}`, ...parts.filter(Boolean)].join("\n\n");

/** A bullet list; the lines are Markdown. */
export const bulletList = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join("\n");

/** A code block. Its fence is longer than any in the code itself. */
export function codeBlock(code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}python\n${code}\n${fence}`;
}

/** Joins the parts that are not empty to a document, with ordinary spaces. */
export function joinParts(parts: readonly string[]): string {
  return `${parts.filter(Boolean).join("\n\n")}\n`.replaceAll("\u00a0", " ");
}
