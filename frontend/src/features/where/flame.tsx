// The flame graph: a canvas with one rectangle per node. The tree grid has the same content for the keyboard.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { colourOf, isLost, LABEL_COLOUR } from "../../shared/colours";
import { isDark, onThemeChange } from "../../shared/page/host";
import { share } from "../../shared/text/format";
import { heightOf, rectangleAt, rectangles, ROW, widthOf, type Rectangle } from "./flame_layout";
import { metricText, nodeName } from "./labels";
import { ROOT, type Model, type Node } from "./model";
import type { Metric } from "./options";
import { changeText } from "./tree_table";

interface Props {
  readonly model: Model;
  readonly metric: Metric;
  readonly found: ReadonlySet<Node> | undefined;
  readonly selected: Node | undefined;
  readonly select: (node: Node) => void;
}

const MIN_LABEL = 30; // px
const CHARACTER = 6.4; // px, at a font size of 11.5 px
const FADED = 0.28;

export function Flame({ model, metric, found, selected, select }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState<Node>(ROOT);
  const [hovered, setHovered] = useState<Rectangle>();
  const [dark, setDark] = useState(isDark);
  const shownTop = top < model.size ? top : ROOT;
  const all = useMemo(() => (width > 0 ? rectangles(model, shownTop, metric, width) : []), [model, shownTop, metric, width]);
  const height = heightOf(all);
  useEffect(() => setTop(ROOT), [model]);
  useEffect(() => onThemeChange(() => setDark(isDark())), []);
  useLayoutEffect(() => {
    if (!holder.current) return undefined;
    const element = holder.current;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(holder.current!);
    for (const each of all) draw(context, each, { model, metric, found, selected, page: style.getPropertyValue("--page").trim(), text: style.getPropertyValue("--text").trim(), font: style.fontFamily });
  }, [all, found, selected, dark, width, height]);
  const shown = hovered?.node ?? selected ?? shownTop;
  return (
    <section class="flame">
      <p class="reading" aria-hidden="true">
        <b class="node-name">{nodeName(model, shown)}</b> {reading(model, shown, metric)}
      </p>
      {shownTop !== ROOT && (
        <p>
          <button type="button" onClick={() => setTop(ROOT)}>Show all</button>
        </p>
      )}
      <div ref={holder} class="flame-canvas">
        <canvas
          ref={canvas}
          role="img"
          aria-label="Flame graph. The table has the same content."
          style={{ width: "100%", height: `${height}px` }}
          onPointerMove={(event) => setHovered(rectangleAt(all, event.offsetX, event.offsetY))}
          onPointerLeave={() => setHovered(undefined)}
          onClick={(event) => {
            const hit = rectangleAt(all, event.offsetX, event.offsetY);
            if (!hit) return;
            select(hit.node);
            if (model.hasChildren(hit.node)) setTop(hit.node);
          }}
        />
      </div>
      <p class="muted">
        {model.other
          ? "Red: longer than in the other recording; blue: shorter; paler: changed less. The width is the sum of both, so that what disappeared is visible."
          : "The width is the value of a node with all below it. The colour is the kind of most of its time; striped: the device does no useful work."}{" "}
        A click on a node shows it over the whole width.
      </p>
    </section>
  );
}

function reading(model: Model, node: Node, metric: Metric): string {
  if (model.other) {
    return `${changeText(metric, model.change(node, metric))} (${metricText(metric, model.before(node, metric))} to ${metricText(metric, model.value(node, metric))})`;
  }
  const [first] = model.regimes(node);
  return `${metricText(metric, model.value(node, metric))}, ${share(model.share(node, metric))}${first ? `, mostly ${first.title.toLowerCase()}` : ""}`;
}

interface Style {
  readonly model: Model;
  readonly metric: Metric;
  readonly found: ReadonlySet<Node> | undefined;
  readonly selected: Node | undefined;
  readonly page: string;
  readonly text: string;
  readonly font: string;
}

function draw(context: CanvasRenderingContext2D, { node, x, y, width }: Rectangle, style: Style): void {
  const { model, found, selected } = style;
  const [main] = model.regimes(node);
  context.globalAlpha = found && !found.has(node) ? FADED : 1;
  const lost = !model.other && main !== undefined && isLost(main.regime);
  context.fillStyle = colour(model, node, style.metric, main?.regime);
  context.fillRect(x, y, Math.max(width - 1, 0.6), ROW - 1);
  if (lost && width > 6) hatch(context, x, y, width - 1, style.page);
  if (width > MIN_LABEL) {
    const name = nodeName(model, node);
    const fits = Math.floor((width - 8) / CHARACTER);
    context.fillStyle = LABEL_COLOUR;
    context.font = `11.5px ${style.font}`;
    context.textBaseline = "middle";
    context.fillText(name.length <= fits ? name : `${name.slice(0, Math.max(fits - 1, 1))}…`, x + 4, y + ROW / 2, width - 6);
  }
  context.globalAlpha = 1;
  if (node === selected) {
    context.strokeStyle = style.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(width - 3, 1), ROW - 3);
  }
}

const NEUTRAL = "#b9c0c9";

/** The colour of the main regime; of two recordings, red or blue, paler the less changed. */
function colour(model: Model, node: Node, metric: Metric, regime: string | undefined): string {
  if (!model.other) return model.kind(node) === "rest" || regime === undefined ? NEUTRAL : colourOf(regime);
  const part = model.change(node, metric) / Math.max(widthOf(model, node, metric), 1e-9);
  const strength = Math.min(Math.abs(part) * 2, 1);
  const [from, to] = [[0xd8, 0xdc, 0xe2], part > 0 ? [0xe0, 0x5c, 0x5c] : [0x5a, 0xa6, 0xd8]] as const;
  return `rgb(${from.map((value, index) => Math.round(value + (to[index]! - value) * strength)).join(" ")})`;
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number, page: string): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, ROW - 1);
  context.clip();
  context.strokeStyle = page;
  context.globalAlpha *= 0.35;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = x - ROW; at < x + width; at += 7) (context.moveTo(at, y + ROW), context.lineTo(at + ROW, y));
  context.stroke();
  context.restore();
}
