// The colour of a regime, shown beside its name. Hatched if the device does no useful work, as in every chart.
import { colourOf, isLost } from "../colours";

interface Props {
  readonly regime: string;
  readonly lost?: boolean; // overrides what the regime says
}

export function Swatch({ regime, lost = isLost(regime) }: Props) {
  return <span class={lost ? "swatch hatched" : "swatch"} style={{ backgroundColor: colourOf(regime) }} />;
}
