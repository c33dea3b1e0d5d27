// Adds style sheets to the page, each of them once.

const added = new Set<string>();

export function addStyle(text: string): void {
  if (added.has(text)) return;
  added.add(text);
  const sheet = document.createElement("style");
  sheet.textContent = text;
  document.head.append(sheet);
}

/** All style sheets that the tab has added. */
export function allStyle(): string {
  return [...added].join("\n");
}
