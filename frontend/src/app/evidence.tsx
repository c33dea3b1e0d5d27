// The recordings of the training that is shown: which one gives the verdict, and a button for each of the others.
import type { RunEntry } from "../shared/report";
import { keyOf } from "../shared/run/keys";
import { partName, type TrainingEntry } from "../shared/run/trainings";
import { shortMoment } from "../shared/text/format";
import { sourceParts } from "../shared/text/names";
import { Icon } from "../shared/widgets/icon";

const MOST_BUTTONS = 6; // more recordings are a list to choose from

interface Props {
  readonly training: TrainingEntry;
  readonly shown: RunEntry;
  readonly choose: (recording: RunEntry) => void;
  /** Shows a list to choose from, without the reason of the verdict. */
  readonly brief: boolean;
}

export function Evidence({ training, shown, choose, brief }: Props) {
  const { members, because, job } = training;
  if (members.length === 1) return null;
  const ordered = job ? [...members].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)) : members;
  const names = ordered.map((member) => partName(member, training));
  const labels = ordered.map((member, index) => (names.filter((name) => name === names[index]).length > 1 ? withTime(names[index]!, member) : names[index]!));
  return (
    <nav class="members" aria-label="Recordings of this training">
      {brief || ordered.length > MOST_BUTTONS ? (
        <label>
          <span class={brief ? "visually-hidden" : ""}>Recording </span>
          <select value={keyOf(shown)} onChange={(event) => choose(ordered[event.currentTarget.selectedIndex]!)}>
            {ordered.map((member, index) => (
              <option key={keyOf(member)} value={keyOf(member)}>
                {labels[index]}
                {member === members[0] && !job ? " (gives the verdict)" : ""}
              </option>
            ))}
          </select>
        </label>
      ) : (
        <ul>
          {ordered.map((member, index) => (
            <li key={keyOf(member)}>
              <button type="button" class="small" aria-current={keyOf(member) === keyOf(shown)} title={member.source} onClick={() => choose(member)}>
                {labels[index]}
                {keyOf(member) === keyOf(shown) && !job && " (shown)"}
                {member === members[0] && because !== "" && (
                  <>
                    {" "}
                    <Icon name="check" /> <span class="trusted">trusted</span>
                  </>
                )}
              </button>
            </li>
          ))}
        </ul>
      )}
      {because && !brief && <span class="muted">{because}</span>}
    </nav>
  );
}

function withTime(name: string, { source }: RunEntry): string {
  const { at, name: file } = sourceParts(source);
  return `${name} ${at === undefined ? file : shortMoment(at)}`;
}
