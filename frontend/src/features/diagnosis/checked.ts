// The judgements of a report that say something about its run.
import { NEED_DEVICE } from "../../shared/regimes";
import type { RegimeVerdict, Report } from "../../shared/report";

/** True for a regime that no run on the CPU has. */
export const needsDevice = (regime: string): boolean => NEED_DEVICE.includes(regime);

/** The judged regimes without those that no run on the CPU has, unless one was found all the same. */
export function checkedRegimes({ device, regimes }: Report): readonly RegimeVerdict[] {
  return device?.kind === "cpu" ? regimes.filter(({ regime, status }) => status === "fires" || !needsDevice(regime)) : regimes;
}
