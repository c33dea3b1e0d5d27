// Text from recordings. As one_line in untrusted_text.py.

// Characters that control a terminal or the direction of writing.
const CONTROL = /(?!\s)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}]/gu;

/** The text on one line, without characters that control a terminal or the direction of writing. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, "").replace(/\s+/g, " ");
}
