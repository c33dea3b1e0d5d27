// The rows of the account in drawing order.
import type { AccountRow } from "../../shared/report";

export interface AccountRows {
  readonly timed: readonly AccountRow[]; // largest first
  readonly empty: readonly AccountRow[]; // in the server's order
}

const hasTime = ({ share, ns_per_step }: AccountRow) => share > 0 && ns_per_step >= 1; // less is a remainder of divisions

/** Separates the regimes with time from those without. A share that rounds to zero still counts as time. */
export function accountRows(account: readonly AccountRow[]): AccountRows {
  return {
    timed: account.filter(hasTime).sort((a, b) => b.share - a.share),
    empty: account.filter((row) => !hasTime(row)),
  };
}
