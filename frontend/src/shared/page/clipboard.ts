// Copies text to the clipboard, also if TensorBoard is used over plain http from another machine.

/** Returns true if the text was copied. */
export async function copyText(text: string): Promise<boolean> {
  // The clipboard API is missing outside of https and localhost, and it can be forbidden in frames.
  if (!navigator.clipboard) return copyBySelection(text);
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => copyBySelection(text),
  );
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "off-screen";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
