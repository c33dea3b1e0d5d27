// Whether the address asks for the tour, and of which recordings. Who has ended it does not see it again.
import { decoded } from "../../shared/page/hash";
import { browserStorage } from "../../shared/page/storage";
import type { Key } from "../../shared/run/keys";

const STORED = "tb_bottleneck.tour";
const ENDED = "ended";

/** The recordings of the tour: before the fix, and with it. */
export interface TourRuns {
  readonly before: Key;
  readonly after: Key;
}

/** The recordings in the address, as `before,after` with escapes. Undefined for anything else, or once the tour was ended. */
export function tourRuns(text: string | undefined, storage: Pick<Storage, "getItem"> | undefined = browserStorage()): TourRuns | undefined {
  const [before, after, ...others] = (text ?? "").split(",").map(decoded);
  if (!before || !after || others.length > 0 || storage?.getItem(STORED) === ENDED) return undefined;
  return { before, after };
}

/** A full or forbidden storage only means that the next visit shows the tour again. */
export function storeEnd(storage: Pick<Storage, "setItem"> | undefined = browserStorage()): void {
  try {
    storage?.setItem(STORED, ENDED);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}
