// Puts text on the clipboard, also where TensorBoard is reached by plain http from another machine.

/** Whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  // The clipboard interface is missing outside of https and localhost, and inside frames it can be forbidden.
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
