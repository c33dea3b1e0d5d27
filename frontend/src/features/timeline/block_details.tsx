// The blocks of the timeline as text: the hovered one, the selected one, and all visible ones as a table.
import { useMemo } from "preact/hooks";
import { lengthOf, type Span } from "../../shared/run/viewport";
import { count, duration, share } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { kernelName } from "../../shared/text/names";
import { Swatch } from "../../shared/widgets/swatch";
import { largest, type Block, type VisibleTiles } from "./hit";
import type { Track } from "./layout";

interface Names {
  readonly keys: readonly string[];
  readonly titles: ReadonlyMap<string, string>;
}

const TOOLTIP_WIDTH = 320;
const ROWS_PER_TRACK = 5;

function nameOf(block: Block, { keys, titles }: Names): string {
  const key = keys[block.key] ?? "";
  return block.name || titles.get(key) || title(key);
}

function mergedNote({ count: blocks, busy }: Block): string {
  return blocks > 1 ? `${count(blocks)} merged, busy ${share(busy)}; longest:` : "";
}

interface TooltipProps extends Names {
  readonly block: Block;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export function Tooltip({ block, x, y, width, ...names }: TooltipProps) {
  const left = Math.max(0, Math.min(x + 14, width - TOOLTIP_WIDTH));
  const key = names.keys[block.key] ?? "";
  return (
    <div class="tooltip" style={{ left: `${left}px`, top: `${y + 18}px` }} aria-hidden="true">
      {mergedNote(block) && <small>{mergedNote(block)}</small>}
      <b>{nameOf(block, names)}</b>
      <span>
        {duration(lengthOf(block))}
        {names.titles.has(key) && block.name && <span class="muted"> · {names.titles.get(key)}</span>}
      </span>
    </div>
  );
}

interface SelectedProps extends Names {
  readonly block: Block | undefined;
  readonly origin: number;
  readonly show: (block: Block) => void;
}

/** Always one line, so that a selection does not shift the page. */
export function SelectedBlock({ block, origin, show, ...names }: SelectedProps) {
  return (
    <div class="selected-block" role="status" tabIndex={0}>
      {block ? (
        <>
          <p class="full-name">
            {mergedNote(block)} <b>{nameOf(block, names)}</b>
          </p>
          <p class="muted">
            {block.track.title}, {duration(block.begin - origin)} into the window, for {duration(lengthOf(block))}{" "}
            <button type="button" class="link" onClick={() => show(block)}>
              Zoom to it
            </button>
          </p>
        </>
      ) : (
        <p class="muted on-screen">Click a block for its full name and times. Drag to move, Ctrl and wheel or two fingers to zoom, double-click to zoom to a block.</p>
      )}
    </div>
  );
}

interface TableProps extends Names {
  readonly tiles: VisibleTiles;
  readonly span: Span;
  readonly tracks: readonly Track[];
}

/** The content of the canvas as a table, also for screen readers. */
export function VisibleBlocks({ tiles, span, tracks, ...names }: TableProps) {
  const rows = useMemo(
    () => tracks.flatMap((track) => largest(tiles, track, span, ROWS_PER_TRACK).map((block, index) => ({ track, block, index }))),
    [span, tracks, tiles.map(({ tile }) => `${tile.level}/${tile.index}`).join()],
  );
  return (
    <details class="visible-blocks">
      <summary>The visible range as a table</summary>
      <table aria-label="The visible range">
        <thead>
          <tr>
            <th scope="col">Track</th>
            <th scope="col">Block</th>
            <th scope="col" class="figure">Time</th>
            <th scope="col" class="figure">Share of the range</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ track, block, index }) => (
            <tr key={`${track.track} ${index}`}>
              <th scope="row">{index === 0 ? track.title : <span class="visually-hidden">{track.title}</span>}</th>
              <td class="text">
                {names.titles.has(names.keys[block.key] ?? "") && <Swatch regime={names.keys[block.key] ?? ""} />}
                <span class="clamped" title={nameOf(block, names)}>
                  {kernelName(nameOf(block, names))}
                </span>
              </td>
              <td class="figure">{duration(block.time)}</td>
              <td class="figure">{share(block.time / lengthOf(span))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
