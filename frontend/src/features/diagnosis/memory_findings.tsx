// Problems with the memory among the findings about time: each with a link to the Memory view.
import type { MemoryFinding, Report } from "../../shared/report";
import { severity } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import { FindingCard } from "../../shared/widgets/finding_card";
import { Review, type Reviewed } from "./review";

interface Props {
  readonly finding: MemoryFinding;
  /** Opens the memory view. Undefined where there are no views. */
  readonly showMemory: (() => void) | undefined;
  readonly reviewed: Reviewed | undefined;
}

/** The findings about the memory that stand among those about time. */
export const memoryFindings = ({ memory }: Report): readonly MemoryFinding[] => memory?.findings.filter(({ headline }) => headline !== "") ?? [];

export function AboutMemory({ finding, showMemory, reviewed }: Props) {
  return (
    <FindingCard {...finding} aside={<Badge word={finding.severity} />}>
      {showMemory && (
        <button type="button" class="link" onClick={showMemory}>
          Show what fills the memory
        </button>
      )}
      {reviewed && <Review {...reviewed} cause={finding.cause} title={finding.title} />}
    </FindingCard>
  );
}

function Badge({ word }: { word: string }) {
  const { text, icon, tone } = severity({ severity: word, regime: "" });
  return (
    <p class={`tone-${tone}`}>
      <Icon name={icon} /> {text}, about the memory
    </p>
  );
}
