// Tables as comma-separated values (RFC 4180).

import { oneLine } from "./untrusted";

export type CsvCell = string | number | undefined;

/** A table with a row of titles. Numbers keep all their digits. */
export function csvOf(titles: readonly string[], rows: readonly (readonly CsvCell[])[]): string {
  return [titles, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Spreadsheets run a cell that begins with one of these characters as a formula, and names from a recording are untrusted. */
const FORMULA = /^\s*[=+\-@]/;

function cell(value: CsvCell): string {
  if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return "";
  if (typeof value === "number") return String(value);
  const plain = oneLine(value);
  const text = FORMULA.test(plain) ? `'${plain}` : plain;
  return /[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
