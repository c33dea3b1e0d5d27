// What reviewers wrote about a recording, and the commands that add to it. Pure.
import type { Review, ReviewState, RunEntry } from "../report";
import { quoted } from "../text/shell";
import { comparedName } from "./keys";

/** The actions of `tb-bottleneck review` with the argument that the user types at the end of the command. */
export const ACTIONS = [
  { name: "accept", title: "Accept", asks: "--because" },
  { name: "fixed", title: "Fixed", asks: "--in" },
  { name: "reopen", title: "Reopen", asks: "--because" },
  { name: "comment", title: "Comment", asks: "" },
] as const;
export type ReviewAction = (typeof ACTIONS)[number];

/** The state of a finding, or of the recording for an empty cause: its own, else that of the recording. */
export function stateOf(review: Review | undefined, cause: string): ReviewState | undefined {
  return review?.states.find((state) => state.cause === cause) ?? review?.states.find((state) => state.cause === "");
}

export type ReviewWord = "open" | "accepted" | "fixed";
export const REVIEW_WORDS: readonly ReviewWord[] = ["open", "accepted", "fixed"];

/** Returns true if a finding of the recording, or the recording as a whole, is in this state. */
export function isInState({ review, open_findings }: RunEntry, word: ReviewWord): boolean {
  return word === "open" ? (open_findings ?? 0) > 0 : (review?.states ?? []).some(({ state }) => state === word);
}

/** The review of a recording in few words: "accepted, 2 comments"; "" if there is none. */
export function reviewSummary(entry: RunEntry): string {
  const states = entry.review?.states ?? [];
  const comments = states.reduce((sum, state) => sum + state.comments.length + state.earlier_comments, 0);
  return [
    ...(["accepted", "fixed"] as const).filter((word) => isInState(entry, word)),
    ...(comments > 0 ? [comments === 1 ? "1 comment" : `${comments} comments`] : []),
  ].join(", ");
}

/** The command that adds a note about a finding, or about the recording for an empty cause. The user completes it. */
export function reviewCommand(logdir: string, entry: RunEntry, cause: string, { name, asks }: ReviewAction): string {
  const about = cause === "" ? [] : ["--cause", quoted(cause)];
  return ["tb-bottleneck review", quoted(logdir), name, quoted(comparedName(entry)), ...about, asks].filter(Boolean).join(" ").concat(" ");
}
