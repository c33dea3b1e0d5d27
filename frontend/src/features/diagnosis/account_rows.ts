// The rows of the account in the order in which they are drawn.
import type { AccountRow } from "../../shared/report";

export interface Folded {
  readonly shown: readonly AccountRow[]; // largest first
  readonly empty: readonly AccountRow[]; // in the server's order
}

/** Parts regimes that own time from those that own none; a share that rounds to nothing still owns some. */
export function folded(account: readonly AccountRow[]): Folded {
  return {
    shown: account.filter((row) => row.share > 0).sort((a, b) => b.share - a.share),
    empty: account.filter((row) => !(row.share > 0)),
  };
}
