// The judgements of a report that say something about its run.
import { REGIMES } from "../../shared/regimes";
import type { RegimeVerdict, Report } from "../../shared/report";

const NEED_DEVICE: ReadonlySet<string> = new Set(REGIMES.filter(({ needsDevice }) => needsDevice).map(({ id }) => id));

/** True for a regime that no run on the CPU has. */
export const needsDevice = (regime: string): boolean => NEED_DEVICE.has(regime);

/** The judged regimes without those that no run on the CPU has, unless one was found all the same. */
export function checkedRegimes({ device, regimes }: Report): readonly RegimeVerdict[] {
  return device?.kind === "cpu" ? regimes.filter(({ regime, status }) => status === "fires" || !needsDevice(regime)) : regimes;
}
