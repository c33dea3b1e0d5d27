// The functions of the program that a finding comes from, with the lines of their def, with their call chains. Functions in
// the loader's workers have none, and are not in the breakdown of the training process.
import type { Place } from "../../shared/report";
import { share } from "../../shared/text/format";
import { placeName, shownPlaces } from "../../shared/text/names";

/** Shows a place in the breakdown. */
export type ShowPlace = (place: Place) => void;

export function Places({ where, showPlace }: { where: readonly Place[]; showPlace?: ShowPlace | undefined }) {
  const places = shownPlaces(where);
  if (places.length === 0) return null;
  return (
    <ul class="places" aria-label="Functions of the program, with the lines of their def">
      {places.map((place, index) => (
        <li key={index}>
          <code>{placeName(place)}</code> {share(place.share)} of this cost{showPlace && (!place.file || place.chain.length > 0) && <> · <button type="button" class="link" aria-label={`Show ${placeName(place)} in the breakdown`} onClick={() => showPlace(place)}>breakdown</button></>}
          {place.module && (place.file || place.block) && <> · module {place.module}</>}
          {place.chain.length > 1 && <small>{place.chain.join(" › ")}</small>}
        </li>
      ))}
    </ul>
  );
}
