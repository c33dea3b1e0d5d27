// What reviewers wrote about a recording or a finding, and the commands that add to it. The tab itself writes nothing.
import type { RunEntry } from "../../shared/report";
import { ACTIONS, reviewCommand, stateOf } from "../../shared/run/review";
import { count, epochMs, moment } from "../../shared/text/format";
import { CopyButton } from "../../shared/widgets/copy_button";

/** The recording that is reviewed. */
export interface Reviewed {
  readonly logdir: string;
  readonly entry: RunEntry;
}

interface Props extends Reviewed {
  readonly cause: string; // "" for the recording as a whole
  readonly title: string; // of the finding, for screen readers
}

export function Review({ logdir, entry, cause, title }: Props) {
  const state = stateOf(entry.review, cause);
  const own = state?.cause === cause ? state : undefined;
  return (
    <div class="review">
      {state && state.state !== "open" && (
        <p>
          <b>{state.state === "fixed" ? "Fixed" : "Accepted"}</b>
          {state.fixed_in && ` in ${state.fixed_in}`} by {state.by}
          {state.reason && `: ${state.reason}`}
        </p>
      )}
      {own?.state === "open" && own.reason && (
        <p>
          <b>Opened again</b> by {own.by}: {own.reason}
        </p>
      )}
      {own?.trial && (
        <p>
          <b>Measured</b> here: <bdi>{own.trial}</bdi>
        </p>
      )}
      {own && own.comments.length > 0 && (
        <ul>
          {own.earlier_comments > 0 && (
            <li class="muted">
              {count(own.earlier_comments)} earlier: <code>tb-bottleneck review</code> shows all
            </li>
          )}
          {own.comments.map(({ by, unix_ns, text }, index) => (
            <li key={index}>
              <bdi>{text}</bdi> <small>{`${by}, ${moment(epochMs(unix_ns))}`}</small>
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>
          Review<span class="visually-hidden"> {title}</span>
        </summary>
        <p class="muted">Copy a command, complete it in a terminal, and everyone who opens this logdir sees it here.</p>
        <p class="commands">
          {ACTIONS.map((action) => (
            <CopyButton key={action.name} title={action.title} label={`Copy command: ${action.title}, ${title}`} text={() => reviewCommand(logdir, entry, cause, action)} />
          ))}
        </p>
      </details>
    </div>
  );
}
