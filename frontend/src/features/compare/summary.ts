// How a comparison is said in short: the same words on the page and in Markdown.
import { factor } from "../../shared/text/format";
import { title } from "../../shared/text/names";
import type { Comparison, Finding, Report } from "../../shared/report";
import type { Said } from "../../shared/text/vocabulary";

/** The answer as a badge. */
export function outcome({ speedup, significant: told, comparable, a_steps, b_steps }: Comparison): Said {
  if (!comparable) return { text: "Cannot be compared", icon: "question", tone: "careful" };
  const ratio = speedup >= 1 ? `${factor(speedup)} as fast` : `Takes ${factor(1 / speedup)} as long`;
  if (told) return speedup >= 1 ? { text: ratio, icon: "check", tone: "good" } : { text: ratio, icon: "warning", tone: "bad" };
  if (Math.min(a_steps, b_steps) < 2) return { text: `${ratio}, noise not known`, icon: "question", tone: "note" };
  return { text: "No difference beyond noise", icon: "dot", tone: "plain" };
}

/** The headline's first sentence, to stand out, and what follows it. */
export function parted(headline: string): readonly [string, string] {
  const [first = "", ...more] = headline.split(/(?<=[.!?]) (?=\p{Lu})/u);
  return [first, more.join(" ")];
}

/** How the difference was told, unless the headline says it already. */
export function testBeside({ headline, test }: Comparison): string {
  return headline.toLowerCase().includes(test.replace(/\.$/, "").toLowerCase()) ? "" : test;
}

/** How the time on another device was foretold. */
export const promiseBasis = (basis: string): string =>
  basis === "replay" ? "A replayed with the times of B’s device" : basis === "account" ? "the account of A alone" : title(basis);

/** What a report finds under this cause; the other witness's findings are in no trace's report. */
export function findingOf(report: Report | undefined, cause: string): Finding | undefined {
  return report?.findings.find((finding) => finding.cause === cause);
}

/** A cause as its report calls it. */
export function causeTitle(cause: string, ...reports: readonly (Report | undefined)[]): string {
  return reports.map((report) => findingOf(report, cause)?.title).find(Boolean) ?? title(cause);
}
