// Identifiers as text.

/** An identifier as words: "no_graph" is "no graph". */
export function words(identifier: string): string {
  return identifier.replaceAll("_", " ");
}

/** The same with a capital letter: "No graph". */
export function title(identifier: string): string {
  return identifier.charAt(0).toUpperCase() + words(identifier).slice(1);
}
