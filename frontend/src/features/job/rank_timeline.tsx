// The steps of selected ranks on one clock.
import { colourOf, isLost } from "../../shared/colours";
import type { RankTable, StepTable } from "../../shared/report";
import { count, duration, shortShare } from "../../shared/text/format";
import { Swatch } from "../../shared/widgets/swatch";
import { barsOf, lengthOfSteps, type Part, type RankBars } from "./step_bars";
import { labelOf } from "./words";

interface Props {
  readonly table: RankTable;
  readonly steps: StepTable | undefined;
  readonly selected: readonly number[];
  readonly toggle: (rank: number) => void;
  readonly openRank: (rank: number) => void;
}

const MAX_SHOWN = 16;

export function RankTimeline({ table, steps, selected, toggle, openRank }: Props) {
  if (!steps || steps.count === 0) {
    return (
      <section>
        <h2>Steps of the ranks</h2>
        <p class="muted">There is no common timeline: the ranks’ collectives were not paired, or their clocks could not be aligned.</p>
      </section>
    );
  }
  const bars = barsOf(table, steps, selected.slice(0, MAX_SHOWN));
  const regimes = steps.account.map(({ regime }) => regime);
  return (
    <section class="rank-timeline">
      <h2>Steps of the ranks, on one clock</h2>
      {bars.length === 0 && <p class="muted">No rank is selected. Select ranks in the heat map or in the table.</p>}
      <ol>
        {bars.map((each) => (
          <RankRow key={each.rank} bars={each} remove={() => toggle(each.rank)} open={() => openRank(each.rank)} />
        ))}
      </ol>
      {bars.length > 0 && (
        <div class="axis muted" aria-hidden="true">
          <span>{duration(0)}</span>
          <span>{duration(lengthOfSteps(steps) / 2)}</span>
          <span>{duration(lengthOfSteps(steps))}</span>
        </div>
      )}
      <ul class="legend">
        {regimes.map((regime) => (
          <li key={regime}>
            <Swatch regime={regime} />
            {regime === "communication" ? "Transfers" : labelOf(regime)}
          </li>
        ))}
        <li>
          <Swatch regime="communication" lost={true} />
          Waiting for other ranks
        </li>
      </ul>
      <p class="muted footnote">
        Each block is a step ({count(steps.count)} per rank are shown). Within a step, times are sorted by kind and not in their order.
        {selected.length > MAX_SHOWN && ` The first ${MAX_SHOWN} of ${count(selected.length)} selected ranks are shown.`}
      </p>
    </section>
  );
}

function RankRow({ bars: { rank, steps }, remove, open }: { bars: RankBars; remove: () => void; open: () => void }) {
  return (
    <li>
      <span class="name">
        <button type="button" class="link" title="Show the diagnosis of this rank" onClick={open}>
          Rank {count(rank)}
        </button>
        <button type="button" class="small remove" aria-label={`Remove rank ${rank} from the timeline`} title="Remove" onClick={remove}>
          ×
        </button>
      </span>
      <span class="track" role="img" aria-label={describe(steps.flatMap(({ parts }) => parts), steps.length)}>
        {steps.map(({ begin, length, parts }, index) => (
          <span key={index} class="step" style={{ insetInlineStart: `calc(100% * ${begin})`, width: `calc(100% * ${length})` }}>
            {parts.map((part, position) => (
              <span
                key={position}
                class={part.waiting || isLost(part.regime) ? "hatched" : undefined}
                title={`${nameOf(part)} ${shortShare(part.share)} of this step`}
                style={{ flexGrow: part.share, backgroundColor: colourOf(part.regime) }}
              />
            ))}
          </span>
        ))}
      </span>
    </li>
  );
}

const nameOf = ({ regime, waiting }: Part): string => (waiting ? "Waiting for other ranks" : regime === "communication" ? "Transfers" : labelOf(regime));

/** "Waiting for other ranks 30 %, Compute 60 %": the mean over the steps. */
function describe(parts: readonly Part[], steps: number): string {
  const sums = new Map<string, number>();
  for (const part of parts) sums.set(nameOf(part), (sums.get(nameOf(part)) ?? 0) + part.share / steps);
  return [...sums].sort(([, a], [, b]) => b - a).map(([name, sum]) => `${name} ${shortShare(sum)}`).join(", ");
}
