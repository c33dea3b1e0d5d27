// The drawn report as one file: what is on the page, written out as HTML that holds its own style and needs no script.
//
// The page is walked node by node and every text is escaped here, so what a trace brought along stays text. What is
// painted becomes a picture; what only serves to work the page stays behind.

const VOID = new Set(["br", "hr", "img", "input", "meta", "link"]);
const LEFT_OUT = new Set(["script", "img", "input", "select", "textarea", "iframe", "object", "embed", "style", "progress"]);
/** Classes of what only serves to work the page. */
const NOT_ON_PAPER = ["share", "tabs", "copy", "buttons", "doings", "supposing", "otherwise", "on-screen"];
/** Buttons that are words of the page, and work it besides; the heads of sorted tables are too. */
const WORDS = ["link", "column", "candidate"];
const KEPT = new Set(["class", "style", "title", "role", "scope", "colspan", "viewBox", "width", "height", "d", "fill", "stroke", "stroke-dasharray", "aria-label", "aria-hidden", "open", "text-anchor", "x", "y"]);
const TEXT: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapedText = (text: string): string => text.replace(/[&<>"']/g, (character) => TEXT[character]!);

/** What the walk needs to know of a node: so that it can be tested without a browser. */
export interface Node {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly childNodes: ArrayLike<Node>;
  readonly attributes?: ArrayLike<{ readonly name: string; readonly value: string }>;
  /** Of a canvas. */
  readonly toDataURL?: () => string;
  readonly clientWidth?: number;
}

const PICTURE = "data:image/png;base64,";
const ELEMENT = 1;
const CHARACTERS = 3;

export function written(node: Node, within = ""): string {
  if (node.nodeType === CHARACTERS) return escapedText(node.nodeValue ?? "");
  if (node.nodeType !== ELEMENT) return "";
  const name = node.nodeName.toLowerCase();
  if (LEFT_OUT.has(name) || !/^[a-z][a-z0-9]*$/.test(name) || NOT_ON_PAPER.some((one) => hasClass(node, one))) return "";
  if (name === "canvas") return picture(node);
  if (hasClass(node, "chart")) return painted(node).map(picture).join(""); // without what listens over it
  if (name === "button") return within === "th" || WORDS.some((one) => hasClass(node, one)) ? element("span", node) : "";
  return element(name, node);
}

function element(name: string, node: Node): string {
  const pressed = node.nodeName.toLowerCase() === "button";
  const inside = Array.from(node.childNodes)
    .filter((child) => !pressed || !hasClass(child, "spoken")) // which says what a press does
    .map((child) => written(child, name))
    .join("");
  const works = attribute(node, "tabindex") !== undefined; // then its role and its label tell how
  const attributes = Array.from(node.attributes ?? [])
    .filter((one) => KEPT.has(one.name) && !(name === "details" && one.name === "open"))
    .filter((one) => !works || (one.name !== "role" && one.name !== "aria-label"))
    .map((one) => ` ${one.name}="${escapedText(one.value)}"`)
    .join("");
  // Nothing stays folded on paper.
  return `<${name}${attributes}${name === "details" ? " open" : ""}>${VOID.has(name) && !inside ? "" : `${inside}</${name}>`}`;
}

/** What is painted, as wide as it is seen; the words beside it say the same. */
function picture(canvas: Node): string {
  const source = canvas.toDataURL?.() ?? "";
  return source.startsWith(PICTURE) ? `<img alt="" src="${escapedText(source)}" width="${canvas.clientWidth ?? 0}">` : "";
}

function painted(node: Node): readonly Node[] {
  return node.nodeName.toLowerCase() === "canvas" ? [node] : Array.from(node.childNodes).flatMap(painted);
}

function attribute(node: Node, wanted: string): string | undefined {
  return Array.from(node.attributes ?? []).find(({ name }) => name === wanted)?.value;
}

function hasClass(node: Node, wanted: string): boolean {
  return attribute(node, "class")?.split(" ").includes(wanted) ?? false;
}

/** Pictures keep their size, so that the names beside them stay where they belong, and drawings one that can be read. */
const PAPER = `img { display: block } .strip, .panel-view, .row-of-runs, .roofline { overflow-x: auto }
.row-of-runs > svg, .roofline > svg { min-width: 680px }`;

/** The whole file. `style` is our own. */
export function pageOf(title: string, style: string, article: Node, theme: string): string {
  return `<!doctype html>
<html lang="en" data-theme="${escapedText(theme)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapedText(title)}</title>
<style>${`${style}\n${PAPER}`.replaceAll("</", "<\\/")}</style>
</head>
<body>
${written(article)}
</body>
</html>
`;
}
