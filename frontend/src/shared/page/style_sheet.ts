// Puts style into the page, once for each part of the tab.

const put = new Set<string>();

export function addStyle(text: string): void {
  if (put.has(text)) return;
  put.add(text);
  const sheet = document.createElement("style");
  sheet.textContent = text;
  document.head.append(sheet);
}

/** All style that the tab has put into the page. */
export function allStyle(): string {
  return [...put].join("\n");
}
