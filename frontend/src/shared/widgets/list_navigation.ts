// Where a key press takes the focus in a list.

/** The index to go to, or undefined where this key does not move. `current` is -1 while no row has the focus. */
export function moved(key: string, current: number, length: number): number | undefined {
  if (length === 0) return undefined;
  switch (key) {
    case "ArrowDown":
      return Math.min(current + 1, length - 1);
    case "ArrowUp":
      return Math.max(current - 1, 0);
    case "Home":
      return 0;
    case "End":
      return length - 1;
    default:
      return undefined;
  }
}

/** The same in a row of tabs, where the end leads back to the beginning. */
export function movedAlong(key: string, current: number, length: number): number | undefined {
  if (length === 0) return undefined;
  switch (key) {
    case "ArrowRight":
      return (current + 1) % length;
    case "ArrowLeft":
      return (current - 1 + length) % length;
    case "Home":
      return 0;
    case "End":
      return length - 1;
    default:
      return undefined;
  }
}
