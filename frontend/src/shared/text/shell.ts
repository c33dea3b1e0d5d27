// Commands that the tab gives to copy. The tab itself changes nothing.

/** A word for a POSIX shell. Control characters would end the command early. */
export function quoted(text: string): string {
  const shown = text.replace(/\p{C}/gu, "");
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
}
