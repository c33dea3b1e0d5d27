// Downloads a file.

export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = safe(name);
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A safe file name from an untrusted name: no path on any system. */
export function safe(name: string): string {
  return name.replace(/[^\p{L}\p{N}._-]+/gu, "_").replace(/^\.+/, "").slice(-120) || "download";
}
