// What the browser stores for this page.

/** Undefined if the page may not store anything. */
export function browserStorage(): Storage | undefined {
  try {
    return window.localStorage;
  } catch (error) {
    if (error instanceof DOMException) return undefined;
    throw error;
  }
}
