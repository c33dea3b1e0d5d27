// How a prediction is said in short: the same words on the page and in Markdown.
import { duration, factor, shortShare } from "../../shared/text/format";
import type { FirstFix, Prediction, WhatIf } from "../../shared/report";
import type { Said } from "../../shared/text/vocabulary";

/** The answer as a badge: only what the whole interval says is promised. */
export function outlook({ after }: WhatIf): Said {
  if (!after) return { text: "Cannot be predicted", icon: "question", tone: "careful" };
  const { speedup, low, high } = after;
  if (low > 1) return { text: `${factor(speedup)} as fast`, icon: "check", tone: "good" };
  if (high < 1) return { text: `Would take ${factor(1 / speedup)} as long`, icon: "warning", tone: "bad" };
  return { text: "Not sure to change anything", icon: "dot", tone: "plain" };
}

/** "between 1.10× and 1.40×". */
export const interval = ({ low, high }: Prediction): string => `between ${factor(low)} and ${factor(high)}`;

/** The same as times: "between 22.0 ms and 28.0 ms". */
export function intervalOfTime(told: WhatIf, { low, high }: Prediction): string {
  return `between ${duration(told.step_ns / high)} and ${duration(told.step_ns / low)}`;
}

export const cost = ({ share }: FirstFix, per: string): string => `${shortShare(share)} of the ${per} then`;

/** What the prediction rests on. */
export const foretold = (basis: string): string =>
  basis === "replay" ? "Simulated on this recording’s own dependencies" : "From the account of this recording alone";
