// Writes the report on the page as an HTML file with its style and without scripts.
//
// All nodes are visited and every text is escaped here, so that names from a trace stay text. Canvases become pictures,
// and controls are left out.

const VOID = new Set(["br", "hr", "img", "input", "meta", "link"]);
const LEFT_OUT = new Set(["script", "img", "input", "select", "textarea", "iframe", "object", "embed", "style", "progress"]);
/** Classes of controls. */
const CONTROLS = ["share", "tabs", "copy", "buttons", "actions", "conditions", "what-if-link", "on-screen"];
/** Classes of buttons whose text is content; those in table headers are as well. */
const TEXT_BUTTONS = ["link", "column", "candidate"];
const ATTRIBUTES = new Set(["class", "style", "title", "role", "scope", "colspan", "viewBox", "width", "height", "d", "fill", "stroke", "stroke-dasharray", "aria-label", "aria-hidden", "open", "text-anchor", "x", "y"]);
const TEXT: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapedText = (text: string): string => text.replace(/[&<>"']/g, (character) => TEXT[character]!);

/** The part of a DOM node that is used, so that this can be tested without a browser. */
export interface Node {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly childNodes: ArrayLike<Node>;
  readonly attributes?: ArrayLike<{ readonly name: string; readonly value: string }>;
  /** Canvas only. */
  readonly toDataURL?: () => string;
  readonly clientWidth?: number;
}

const PICTURE = "data:image/png;base64,";
const ELEMENT = 1;
const TEXT_NODE = 3;

/** The HTML of a node. `parent` is the name of its parent. */
export function nodeHtml(node: Node, parent = ""): string {
  if (node.nodeType === TEXT_NODE) return escapedText(node.nodeValue ?? "");
  if (node.nodeType !== ELEMENT) return "";
  const name = node.nodeName.toLowerCase();
  if (LEFT_OUT.has(name) || !/^[a-z][a-z0-9]*$/.test(name) || CONTROLS.some((name) => hasClass(node, name))) return "";
  if (name === "canvas") return picture(node);
  if (hasClass(node, "chart")) return canvasesIn(node).map(picture).join(""); // without the overlay for the pointer
  if (name === "button") return parent === "th" || TEXT_BUTTONS.some((name) => hasClass(node, name)) ? element("span", node) : "";
  return element(name, node);
}

function element(name: string, node: Node): string {
  const isButton = node.nodeName.toLowerCase() === "button";
  const inside = Array.from(node.childNodes)
    .filter((child) => !isButton || !hasClass(child, "visually-hidden")) // the description of the action
    .map((child) => nodeHtml(child, name))
    .join("");
  const isControl = attribute(node, "tabindex") !== undefined; // its role and its label describe the interaction
  const attributes = Array.from(node.attributes ?? [])
    .filter((each) => ATTRIBUTES.has(each.name) && !(name === "details" && each.name === "open"))
    .filter((each) => !isControl || (each.name !== "role" && each.name !== "aria-label"))
    .map((each) => ` ${each.name}="${escapedText(each.value)}"`)
    .join("");
  // All details are open in the file.
  return `<${name}${attributes}${name === "details" ? " open" : ""}>${VOID.has(name) && !inside ? "" : `${inside}</${name}>`}`;
}

/** The picture of a canvas at its width on the page. The text beside it has the same content. */
function picture(canvas: Node): string {
  const source = canvas.toDataURL?.() ?? "";
  return source.startsWith(PICTURE) ? `<img alt="" src="${escapedText(source)}" width="${canvas.clientWidth ?? 0}">` : "";
}

function canvasesIn(node: Node): readonly Node[] {
  return node.nodeName.toLowerCase() === "canvas" ? [node] : Array.from(node.childNodes).flatMap(canvasesIn);
}

function attribute(node: Node, key: string): string | undefined {
  return Array.from(node.attributes ?? []).find(({ name }) => name === key)?.value;
}

function hasClass(node: Node, className: string): boolean {
  return attribute(node, "class")?.split(" ").includes(className) ?? false;
}

/** Pictures keep their size, so that the names beside them stay aligned; charts keep a readable size. */
const FILE_STYLE = `img { display: block } .strip, .panel-view, .series-points, .roofline { overflow-x: auto }
.series-points > svg, .roofline > svg { min-width: 680px }`;

/** The HTML file. `style` is trusted. */
export function htmlPage(title: string, style: string, article: Node, theme: string): string {
  return `<!doctype html>
<html lang="en" data-theme="${escapedText(theme)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapedText(title)}</title>
<style>${`${style}\n${FILE_STYLE}`.replaceAll("</", "<\\/")}</style>
</head>
<body>
${nodeHtml(article)}
</body>
</html>
`;
}
