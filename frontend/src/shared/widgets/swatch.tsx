// A regime's colour beside its name; hatched where the device is kept from working, as in every chart.
import { colourOf, isLost } from "../colours";

interface Props {
  readonly regime: string;
  readonly lost?: boolean; // where more than the regime tells it
}

export function Swatch({ regime, lost = isLost(regime) }: Props) {
  return <span class={lost ? "swatch hatched" : "swatch"} style={{ backgroundColor: colourOf(regime) }} />;
}
