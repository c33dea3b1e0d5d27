// The places of the program that a finding comes from, with their call chains: lines that run, or functions with the lines of
// their def. Functions in the loader's workers have no chain, and are not in the breakdown of the training process.
import type { Place } from "../../shared/report";
import { share } from "../../shared/text/format";
import { placeName, shownPlaces } from "../../shared/text/names";

/** Shows a place in the breakdown. */
export type ShowPlace = (place: Place) => void;

export function Places({ where, showPlace }: { where: readonly Place[]; showPlace?: ShowPlace | undefined }) {
  const places = shownPlaces(where);
  if (places.length === 0) return null;
  return (
    <ul class="places" aria-label="Places in the program">
      {places.map((place, index) => (
        <li key={index}>
          <code>{placeName(place)}</code> {share(place.share)} of this cost{costlyLines(place)}{showPlace && (!place.file || place.chain.length > 0) && <> · <button type="button" class="link" aria-label={`Show ${placeName(place)} in the breakdown`} onClick={() => showPlace(place)}>breakdown</button></>}
          {place.module && (place.file || place.block) && <> · module {place.module}</>}
          {place.chain.length > 1 && <small>{place.chain.join(" › ")}</small>}
          {place.source.length > 0 && <Source {...place} />}
        </li>
      ))}
    </ul>
  );
}

/** The costliest lines of the place with their shares, in the words of the terminal; empty if they are not known. */
function costlyLines({ hottest_line: hottest, hottest_share: most, other_lines: others }: Place): string {
  const first = hottest > 0 ? `, most in line ${hottest} (${share(most)})` : "";
  const rest = others.map((other) => `${other.line} (${share(other.share)})`).join(", ");
  return rest ? `${first}, then line${others.length > 1 ? "s" : ""} ${rest}` : first;
}

/** The line that runs, with those around it. */
function Source({ file, line: number, exact, hottest_line: hottest, source, source_begin: first }: Place) {
  const line = exact ? number : hottest;
  return (
    <pre class="source" role="region" aria-label={`Line ${line} of ${file}`} tabIndex={0}>
      {source.map((text, index) => (
        <code key={index} class={first + index === line ? "current" : undefined} aria-current={first + index === line ? "true" : undefined}>
          <span class="number">{first + index}</span>
          {text}
          {"\n"}
        </code>
      ))}
    </pre>
  );
}
