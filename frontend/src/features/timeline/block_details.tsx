// What the timeline shows, in words: under the pointer, selected, and all of it as a table.
import { useMemo } from "preact/hooks";
import { count, duration, share } from "../../shared/text/format";
import { kernelName, title } from "../../shared/text/names";
import { most, type Seen, type Thing } from "./hit";
import type { Track } from "./layout";
import { lengthOf, type Span } from "../../shared/run/viewport";
import { Swatch } from "../../shared/widgets/swatch";

interface Words {
  readonly keys: readonly string[];
  readonly titles: ReadonlyMap<string, string>;
}

const TIP_WIDTH = 320;
const LISTED = 5; // names a track

function nameOf(thing: Thing, { keys, titles }: Words): string {
  const key = keys[thing.key] ?? "";
  return thing.name || titles.get(key) || title(key);
}

function several({ count: many, busy }: Thing): string {
  return many > 1 ? `${count(many)} merged, busy ${share(busy)}; the longest:` : "";
}

interface TipProps extends Words {
  readonly thing: Thing;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export function Tip({ thing, x, y, width, ...words }: TipProps) {
  const left = Math.max(0, Math.min(x + 14, width - TIP_WIDTH));
  const key = words.keys[thing.key] ?? "";
  return (
    <div class="tip" style={{ left: `${left}px`, top: `${y + 18}px` }} aria-hidden="true">
      {several(thing) && <small>{several(thing)}</small>}
      <b>{nameOf(thing, words)}</b>
      <span>
        {duration(lengthOf(thing))}
        {words.titles.has(key) && thing.name && <span class="muted"> · {words.titles.get(key)}</span>}
      </span>
    </div>
  );
}

interface AboutProps extends Words {
  readonly thing: Thing | undefined;
  readonly origin: number;
  readonly show: (thing: Thing) => void;
}

/** One line that is always there, so that selecting moves nothing. */
export function About({ thing, origin, show, ...words }: AboutProps) {
  return (
    <div class="about" role="status">
      {thing ? (
        <>
          <p class="whole-name">
            {several(thing)} <b>{nameOf(thing, words)}</b>
          </p>
          <p class="muted">
            {thing.track.title}, {duration(thing.begin - origin)} into the window, for {duration(lengthOf(thing))}{" "}
            <button type="button" class="link" onClick={() => show(thing)}>
              Zoom to it
            </button>
          </p>
        </>
      ) : (
        <p class="muted on-screen">Click a block for its whole name and times. Drag to move, Ctrl and wheel or two fingers to zoom, double-click to zoom to a block.</p>
      )}
    </div>
  );
}

interface TableProps extends Words {
  readonly seen: Seen;
  readonly span: Span;
  readonly tracks: readonly Track[];
}

/** The same as the canvas shows, for whoever cannot see it. */
export function SeenTable({ seen, span, tracks, ...words }: TableProps) {
  const rows = useMemo(
    () => tracks.flatMap((track) => most(seen, track, span, LISTED).map((thing, place) => ({ track, thing, place }))),
    [span, tracks, seen.map(({ tile }) => `${tile.level}/${tile.index}`).join()],
  );
  return (
    <details class="seen">
      <summary>What is seen here, as a table</summary>
      <table aria-label="What is seen here">
        <thead>
          <tr>
            <th scope="col">Track</th>
            <th scope="col">Most of it</th>
            <th scope="col" class="figure">Time</th>
            <th scope="col" class="figure">Of what is seen</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ track, thing, place }) => (
            <tr key={`${track.track} ${place}`}>
              <th scope="row">{place === 0 ? track.title : <span class="spoken">{track.title}</span>}</th>
              <td class="words">
                {words.titles.has(words.keys[thing.key] ?? "") && <Swatch regime={words.keys[thing.key] ?? ""} />}
                <span class="clamped" title={nameOf(thing, words)}>
                  {kernelName(nameOf(thing, words))}
                </span>
              </td>
              <td class="figure">{duration(thing.time)}</td>
              <td class="figure">{share(thing.time / lengthOf(span))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
