// Short texts about a prediction.
import type { FirstFix, Prediction, WhatIf } from "../../../shared/report";
import { duration, factor, shortShare } from "../../../shared/text/format";
import type { Label } from "../../../shared/text/vocabulary";

/** The result as a badge. It is faster or slower only if the whole interval is. */
export function predictionBadge({ after }: WhatIf): Label {
  if (!after) return { text: "Cannot be predicted", icon: "question", tone: "careful" };
  const { speedup, low, high } = after;
  if (low > 1) return { text: `${factor(speedup)} as fast`, icon: "check", tone: "good" };
  if (high < 1) return { text: `Would take ${factor(1 / speedup)} as long`, icon: "warning", tone: "bad" };
  return { text: "No certain change", icon: "dot", tone: "plain" };
}

/** "between 1.10× and 1.40×". */
export const interval = ({ low, high }: Prediction): string => `between ${factor(low)} and ${factor(high)}`;

/** The same as times: "between 22.0 ms and 28.0 ms". */
export function intervalOfTime(prediction: WhatIf, { low, high }: Prediction): string {
  return `between ${duration(prediction.step_ns / high)} and ${duration(prediction.step_ns / low)}`;
}

export const cost = ({ share }: FirstFix, per: string): string => `${shortShare(share)} of the ${per} after the change`;

/** The basis of the prediction. */
export const predictionBasis = (basis: string): string =>
  basis === "replay" ? "Simulated with the dependencies in this recording" : "Computed from the account of this recording only";
