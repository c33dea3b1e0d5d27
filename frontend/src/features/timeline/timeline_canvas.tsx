// The canvas of the timeline with everything that moves it: pointer, wheel, fingers, keys, buttons.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { quietColours } from "../../shared/colours";
import { duration } from "../../shared/text/format";
import { isDark, onThemeChange, putInUrl } from "../../shared/page/host";
import type { Timeline } from "../../shared/report";
import { settled } from "../../shared/server/polling";
import { useGestures } from "./gestures";
import { find, type Seen, type Thing } from "./hit";
import { layout, rowAt } from "./layout";
import { paint, type Theme } from "./paint";
import { Tiles } from "./tiles";
import { spanText } from "../../app/state";
import { around, kept, lengthOf, moved, pressed, zoomed, type Span } from "../../shared/run/viewport";
import type { EvidenceProps } from "../../shared/run/view_props";
import { About, SeenTable, Tip } from "./block_details";
import { TakeAway } from "./slice_export";

const GUTTER = 176; // px for the tracks' names; where there is less room they stand above
const NARROW = 640;
const ABOVE = 16;
const CLICK_SLOP = 4; // px that a click may move
const SETTLED_MS = 350;

interface Props extends EvidenceProps {
  readonly overview: Timeline;
  readonly whole: Span;
  readonly titles: ReadonlyMap<string, string>;
}

export function Strip({ client, entry, report, focus, overview, whole, titles }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [room, setRoom] = useState(0); // px for names and canvas together; 0 until it is known
  const [span, setSpan] = useState<Span>(() => firstSpan(focus, report, whole));
  const [settledSpan, setSettled] = useState(span);
  const [pointed, point] = useState<{ readonly thing: Thing; readonly x: number; readonly y: number }>();
  const [selected, select] = useState<Thing>();
  const [problem, setProblem] = useState<string>();
  const [, arrived] = useState(0);
  const narrow = room < NARROW;
  const width = narrow ? room : room - GUTTER;
  const { tracks, height } = useMemo(() => layout(overview.lanes, narrow ? ABOVE : 0), [overview, narrow]);
  const tiles = useMemo(
    () =>
      new Tiles(
        whole,
        overview,
        (begin, end, pixels, signal) => settled(() => client.timeline(entry.id, begin, end, pixels, signal), signal),
        (failed) => (setProblem(failed), arrived((count) => count + 1)),
      ),
    [overview],
  );
  useEffect(() => () => tiles.close(), [tiles]);
  useEffect(() => {
    if (focus) setSpan(firstSpan(focus, report, whole));
  }, [focus]);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(span);
      putInUrl("at", spanText(span));
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [span]);
  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    // Of the whole, not of the canvas: whether names stand beside it changes the canvas, and tiles would be asked for twice.
    const observer = new ResizeObserver(() => element.clientWidth > 0 && setRoom(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const theme = useTheme(holder);
  const seen: Seen = width > 0 ? tiles.seen(span, width) : [];
  const origin = report.window?.begin_ns ?? whole.begin;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || !theme || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (context.canvas.width !== wide) context.canvas.width = wide;
    if (context.canvas.height !== high) context.canvas.height = high;
    const markedAs = focus?.label ?? "";
    const picture = { span, origin, width, height, ratio, tracks, keys: overview.keys, titles, seen, selected, markedAs };
    paint(context, { ...picture, marked: focus?.label ? focus : undefined, namesAbove: narrow }, theme);
  });

  const gestures = useGestures(canvas, span, setSpan, whole, width);
  const thingAt = (x: number, y: number): Thing | undefined => {
    const hit = rowAt(tracks, y);
    if (!hit || width === 0) return undefined;
    const scale = lengthOf(span) / width;
    return find(seen, hit.track, hit.row, span.begin + x * scale, 3 * scale);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = pressed(event.key, span, whole);
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
          <button type="button" aria-label="Closer" title="Closer (+)" onClick={() => setSpan(zoomed(span, 0.5, 0.5, whole))}>+</button>
          <button type="button" aria-label="Farther" title="Farther (−)" onClick={() => setSpan(zoomed(span, 2, 0.5, whole))}>−</button>
          <button type="button" title="The whole recording (0)" onClick={() => setSpan(whole)}>All</button>
          {focus?.label && (
            <button type="button" onClick={() => setSpan(around(focus, whole))}>To the evidence</button>
          )}
          <TakeAway client={client} entry={entry} span={span} />
        </span>
      </div>
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
          aria-label="Timeline. Arrow left and right move, plus and minus zoom, zero shows everything. The table below says what is seen."
          onKeyDown={onKeyDown}
        >
          <canvas
            ref={canvas}
            style={{ width: `${width}px`, height: `${height}px` }}
            {...gestures.handlers}
            onPointerMove={(event) => {
              if (gestures.move(event)) return point(undefined);
              const thing = thingAt(event.offsetX, event.offsetY);
              point(thing && { thing, x: event.offsetX, y: event.offsetY });
            }}
            onPointerLeave={() => point(undefined)}
            onClick={(event) => {
              if (!gestures.dragged(CLICK_SLOP)) select(thingAt(event.offsetX, event.offsetY));
            }}
            onDblClick={(event) => {
              const thing = thingAt(event.offsetX, event.offsetY);
              if (thing) setSpan(around(thing, whole));
            }}
          />
          {pointed && <Tip {...pointed} keys={overview.keys} titles={titles} width={width} />}
        </div>
      </div>
      {problem && <p role="status">{problem}</p>}
      <About thing={selected} keys={overview.keys} titles={titles} origin={origin} show={(thing) => setSpan(around(thing, whole))} />
      <SeenTable seen={seen} span={settledSpan} tracks={tracks} keys={overview.keys} titles={titles} />
    </>
  );
}

function firstSpan(focus: EvidenceProps["focus"], report: EvidenceProps["report"], whole: Span): Span {
  if (focus?.shown) return kept(focus.shown, whole);
  return focus ? around(focus, whole) : windowOf(report, whole);
}

/** At first the judged window is shown, or two of its steps where it has many. */
function windowOf({ window: judged }: EvidenceProps["report"], whole: Span): Span {
  if (!judged) return whole;
  const length = judged.end_ns - judged.begin_ns;
  const some = judged.steps > 3 && judged.step_ns ? Math.min(judged.step_ns.median * 3, length) : length;
  return { begin: judged.begin_ns, end: judged.begin_ns + some };
}

function useTheme(holder: { readonly current: HTMLElement | null }): Theme | undefined {
  const [theme, setTheme] = useState<Theme>();
  useEffect(() => {
    const read = () => {
      if (!holder.current) return;
      const style = getComputedStyle(holder.current);
      const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
      setTheme({
        page: colour("page"),
        raised: colour("raised"),
        line: colour("line"),
        text: colour("text"),
        muted: colour("muted"),
        focus: colour("focus"),
        font: style.fontFamily,
        mono: colour("mono"),
        keys: quietColours(isDark()),
      });
    };
    read();
    return onThemeChange(read);
  }, []);
  return theme;
}
