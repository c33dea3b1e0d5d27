// The canvas of the timeline, with pointer, wheel, touch, keyboard and buttons.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { quietColours } from "../../shared/colours";
import { useWindowHeight } from "../../shared/page/media";
import { useTheme } from "../../shared/page/theme";
import type { Timeline } from "../../shared/report";
import type { ViewProps } from "../../shared/run/view_props";
import { clamped, lengthOf, moved, spanAfterKey, withContext, zoomed, type Span } from "../../shared/run/viewport";
import { duration } from "../../shared/text/format";
import { SelectedBlock, Tooltip, VisibleBlocks } from "./block_details";
import { useGestures } from "./gestures";
import { find, type Block, type VisibleTiles } from "./hit";
import { layout, rowAt } from "./layout";
import { paint } from "./paint";
import { SliceExport } from "./slice_export";
import { Tiles } from "./tiles";

const GUTTER = 176; // px for the names of the tracks; on a narrow page they are above the tracks
const NARROW = 640;
const NAME_ABOVE = 16;
const AROUND = 320; // px for the headline, the tabs, the controls and the selected block
const CLICK_SLOP = 4; // px that the pointer may move during a click
const SETTLED_MS = 350;

interface Props extends ViewProps {
  readonly overview: Timeline;
  readonly whole: Span;
  readonly titles: ReadonlyMap<string, string>;
}

export function TimelineCanvas({ client, entry, report, focus, visible, setVisible, overview, whole, titles }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const windowHeight = useWindowHeight();
  const [availableWidth, setAvailableWidth] = useState(0); // px for names and canvas together; 0 until it is known
  const [span, setSpan] = useState<Span>(() => initialSpan(focus, visible, report, whole));
  const [settledSpan, setSettledSpan] = useState(span);
  const current = useRef({ focus, visible }); // what `span` was derived from, or was stored as
  const [hovered, setHovered] = useState<{ readonly block: Block; readonly x: number; readonly y: number }>();
  const [selected, select] = useState<Block>();
  const [problem, setProblem] = useState<string>();
  const [, redraw] = useState(0);
  const narrow = availableWidth < NARROW;
  const width = narrow ? availableWidth : availableWidth - GUTTER;
  const { tracks, height } = useMemo(() => layout(overview.lanes, narrow ? NAME_ABOVE : 0, windowHeight - AROUND), [overview, narrow, windowHeight]);
  const tiles = useMemo(
    () =>
      new Tiles(
        whole,
        overview,
        (begin, end, pixels, signal) => client.timeline(entry.id, begin, end, pixels, signal),
        (failure) => (setProblem(failure), redraw((count) => count + 1)),
      ),
    [overview],
  );
  useEffect(() => () => tiles.close(), [tiles]);
  useEffect(() => {
    if (focus === current.current.focus && visible === current.current.visible) return;
    current.current = { focus, visible };
    setSpan(initialSpan(focus, visible, report, whole));
  }, [focus, visible]);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettledSpan(span);
      current.current = { ...current.current, visible: span };
      setVisible(span);
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [span]);
  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    // Observes the whole and not the canvas: the canvas changes with the place of the names, and tiles would be requested twice.
    const observer = new ResizeObserver(() => element.clientWidth > 0 && setAvailableWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const theme = useTheme(holder);
  const visibleTiles: VisibleTiles = width > 0 ? tiles.visible(span, width) : [];
  const origin = report.window?.begin_ns ?? whole.begin;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || !theme || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (context.canvas.width !== pixelWidth) context.canvas.width = pixelWidth;
    if (context.canvas.height !== pixelHeight) context.canvas.height = pixelHeight;
    const size = { span, origin, width, height, ratio };
    const content = { tracks, keys: overview.keys, titles, tiles: visibleTiles, selected };
    paint(context, { ...size, ...content, marked: focus, markLabel: focus?.label ?? "", namesAbove: narrow }, { ...theme, keys: quietColours(theme.dark) });
  });

  const gestures = useGestures(canvas, span, setSpan, whole, width);
  const blockAt = (x: number, y: number): Block | undefined => {
    const hit = rowAt(tracks, y);
    if (!hit || width === 0) return undefined;
    const scale = lengthOf(span) / width;
    return find(visibleTiles, hit.track, hit.row, span.begin + x * scale, 3 * scale);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = spanAfterKey(event.key, span, whole);
    if (!next) return;
    setSpan(next);
    event.preventDefault();
  };

  return (
    <>
      <div class="controls">
        <span class="extent" role="status">
          {`${duration(span.begin - origin)} to ${duration(span.end - origin)}`}
          <span class="muted"> · {duration(lengthOf(span))}</span>
        </span>
        <span class="buttons">
          <button type="button" aria-label="Earlier" title="Earlier (←)" onClick={() => setSpan(moved(span, -0.5, whole))}>←</button>
          <button type="button" aria-label="Later" title="Later (→)" onClick={() => setSpan(moved(span, 0.5, whole))}>→</button>
          <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => setSpan(zoomed(span, 0.5, 0.5, whole))}>+</button>
          <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => setSpan(zoomed(span, 2, 0.5, whole))}>−</button>
          <button type="button" title="The whole recording (0)" onClick={() => setSpan(whole)}>All</button>
          {focus && (
            <button type="button" onClick={() => setSpan(withContext(focus, whole))}>To the evidence</button>
          )}
          <SliceExport client={client} entry={entry} span={span} />
        </span>
      </div>
      <SelectedBlock block={selected} keys={overview.keys} titles={titles} origin={origin} show={(block) => setSpan(withContext(block, whole))} />
      <div class={narrow ? "strip narrow" : "strip"} style={{ gridTemplateColumns: `${GUTTER}px minmax(0, 1fr)` }} ref={holder}>
        {!narrow && (
          <div class="gutter" style={{ height: `${height}px` }} aria-hidden="true">
            {tracks.map((track) => (
              <div key={track.track} class="track-name" style={{ top: `${track.top}px` }} title={track.title}>
                {track.title}
              </div>
            ))}
          </div>
        )}
        <div
          class="canvas"
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="group"
          aria-roledescription="timeline"
          aria-busy={tiles.busy}
          aria-label="Timeline. Left and right arrow move, plus and minus zoom, zero shows everything. The table below has the same content."
          onKeyDown={onKeyDown}
        >
          <canvas
            ref={canvas}
            style={{ width: `${width}px`, height: `${height}px` }}
            {...gestures.handlers}
            onPointerMove={(event) => {
              if (gestures.move(event)) return setHovered(undefined);
              const block = blockAt(event.offsetX, event.offsetY);
              setHovered(block && { block, x: event.offsetX, y: event.offsetY });
            }}
            onPointerLeave={() => setHovered(undefined)}
            onClick={(event) => {
              if (!gestures.dragged(CLICK_SLOP)) select(blockAt(event.offsetX, event.offsetY));
            }}
            onDblClick={(event) => {
              const block = blockAt(event.offsetX, event.offsetY);
              if (block) setSpan(withContext(block, whole));
            }}
          />
          {hovered && <Tooltip {...hovered} keys={overview.keys} titles={titles} width={width} />}
        </div>
      </div>
      {problem && <p role="status">{problem}</p>}
      <VisibleBlocks tiles={visibleTiles} span={settledSpan} tracks={tracks} keys={overview.keys} titles={titles} />
    </>
  );
}

function initialSpan(focus: ViewProps["focus"], visible: ViewProps["visible"], report: ViewProps["report"], whole: Span): Span {
  if (visible) return clamped(visible, whole);
  return focus ? withContext(focus, whole) : windowSpan(report, whole);
}

/** The judged window, or its first three steps if it has more. */
function windowSpan({ window: judged }: ViewProps["report"], whole: Span): Span {
  if (!judged) return whole;
  const length = judged.end_ns - judged.begin_ns;
  const shown = judged.steps > 3 && judged.step_ns ? Math.min(judged.step_ns.median * 3, length) : length;
  return { begin: judged.begin_ns, end: judged.begin_ns + shown };
}
