// Short texts about a comparison.
import type { Comparison } from "../../shared/report";
import { factor } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import type { Label } from "../../shared/text/vocabulary";

/** The result as a badge: of the steps without a profiler, if both runs measured them. */
export function outcome({ unprofiled, speedup: typical, mean_speedup, by_means, significant, comparable, similarity, a_steps, b_steps }: Comparison): Label {
  if (!comparable) return { text: "Cannot be compared", icon: "question", tone: "careful" };
  if (similarity && !similarity.same_work) return { text: "Different work", icon: "question", tone: "careful" };
  if (unprofiled) return outcomeOf(unprofiled.speedup, unprofiled.difference);
  const speedup = by_means ? mean_speedup : typical;
  const ratio = speedup >= 1 ? `${factor(speedup)} as fast` : `A is ${factor(1 / speedup)} as fast`;
  if (significant || by_means) return speedup >= 1 ? { text: ratio, icon: "check", tone: "good" } : { text: ratio, icon: "warning", tone: "bad" };
  if (Math.min(a_steps, b_steps) < 2) return { text: `${ratio}, noise unknown`, icon: "question", tone: "note" };
  return { text: "No difference beyond noise", icon: "dot", tone: "plain" };
}

function outcomeOf(speedup: number, difference: string): Label {
  if (difference === "faster") return { text: `${factor(speedup)} as fast`, icon: "check", tone: "good" };
  if (difference === "slower") return { text: `A is ${factor(1 / speedup)} as fast`, icon: "warning", tone: "bad" };
  return difference === "none" ? { text: "No difference beyond noise", icon: "dot", tone: "plain" } : { text: "Noise unknown", icon: "question", tone: "note" };
}

/** The description of the significance test, unless the headline already contains it. */
export function testNote({ headline, test, unprofiled }: Comparison): string {
  if (headline.toLowerCase().includes(test.replace(/\.$/, "").toLowerCase())) return "";
  return unprofiled ? `Recorded steps: ${test}` : test;
}

/** How the time on another device was predicted. */
export const predictionBasis = (basis: string): string =>
  basis === "replay" ? "a replay of A with the kernel times of B’s device" : basis === "account" ? "the account of A alone" : title(basis);
