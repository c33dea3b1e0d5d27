// The memory of the peak as areas in proportion to their bytes: one rectangle per place, side by side with those of its category.
import { hierarchy, treemap, type HierarchyRectangularNode } from "d3-hierarchy";
import { useMemo, useRef } from "preact/hooks";
import { LABEL_COLOUR, memoryColourOf } from "../../shared/colours";
import { useWidth } from "../../shared/page/media";
import type { MemorySite } from "../../shared/report";
import { bytes, count, share } from "../../shared/text/format";
import { lineOf, placeOf } from "../../shared/text/places";

const WIDTH = 860;
const HEIGHT = 360;
const LABELLED = { width: 70, height: 34 };

interface Node {
  readonly kind: string;
  readonly site?: MemorySite;
  readonly children?: readonly Node[];
}

type Rectangle = HierarchyRectangularNode<Node>;

/** The rectangles of the places, those of a category together, in a field of this size in px. */
export function rectangles(sites: readonly MemorySite[], width: number, height: number): readonly Rectangle[] {
  const kinds = new Map<string, Node[]>();
  for (const site of sites) kinds.set(site.kind, [...(kinds.get(site.kind) ?? []), { kind: site.kind, site }]);
  const whole: Node = { kind: "", children: [...kinds].map(([kind, children]) => ({ kind, children })) };
  const root = hierarchy<Node>(whole, ({ children }) => children && [...children])
    .sum(({ site }) => site?.bytes ?? 0)
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  return treemap<Node>().size([width, height]).paddingInner(1).round(true)(root).leaves();
}

export function Area({ sites, titles }: { sites: readonly MemorySite[]; titles: ReadonlyMap<string, string> }) {
  const field = useRef<HTMLDivElement>(null);
  const width = useWidth(field, WIDTH);
  const placed = useMemo(() => rectangles(sites, width, HEIGHT), [sites, width]);
  const whole = sites.reduce((sum, site) => sum + site.bytes, 0) || 1;
  const first = placed[0]?.data.site;
  return (
    <section class="memory-area">
      <h2>Where it was allocated</h2>
      <div ref={field} class="area-map" role="img" style={{ height: `${HEIGHT}px` }} aria-label={first ? `${count(placed.length)} places; the largest area is ${described(first, whole, titles)}` : "no places"}>
        {placed.map((node, index) => (
          <Part key={index} node={node} whole={whole} titles={titles} />
        ))}
      </div>
    </section>
  );
}

function Part({ node, whole, titles }: { node: Rectangle; whole: number; titles: ReadonlyMap<string, string> }) {
  const { x0, x1, y0, y1, data } = node;
  const { site, kind } = data;
  if (!site || x1 <= x0 || y1 <= y0) return null;
  const labelled = x1 - x0 >= LABELLED.width && y1 - y0 >= LABELLED.height;
  const style = { left: `${x0}px`, top: `${y0}px`, width: `${x1 - x0}px`, height: `${y1 - y0}px`, backgroundColor: memoryColourOf(kind), color: LABEL_COLOUR };
  return (
    <div class={labelled ? "area-part labelled" : "area-part"} style={style} title={described(site, whole, titles)}>
      {labelled && (
        <>
          <b>{bytes(site.bytes)}</b>
          <span>{shortName(site) || (titles.get(kind) ?? kind)}</span>
        </>
      )}
    </div>
  );
}

/** The line without its folders, which a small area has no space for. */
const shortName = (site: MemorySite): string => (lineOf(site) || site.operator || site.module).replace(/^.*\//, "");

function described(site: MemorySite, whole: number, titles: ReadonlyMap<string, string>): string {
  const blocks = site.blocks > 1 ? ` in ${count(site.blocks)} blocks` : "";
  return `${titles.get(site.kind) ?? site.kind}: ${bytes(site.bytes)} (${share(site.bytes / whole)})${blocks}, ${placeOf(site)}`;
}
