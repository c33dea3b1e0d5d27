// The drawn report as one file: what is on the page, written out as HTML that holds its own style and needs no script.
//
// The page is walked node by node and every text is escaped here, so what a trace brought along stays text.

const VOID = new Set(["br", "hr", "img", "input", "meta", "link", "path"]);
const LEFT_OUT = new Set(["script", "button", "input", "select", "textarea", "canvas", "iframe", "object", "embed", "style", "progress"]);
/** Classes of what only serves to work the page. */
const NOT_ON_PAPER = ["share", "tabs", "copy", "controls", "doings", "supposing", "otherwise"];
const KEPT = new Set(["class", "style", "title", "role", "scope", "colspan", "viewBox", "width", "height", "d", "fill", "stroke", "stroke-dasharray", "aria-label", "aria-hidden", "open", "text-anchor", "x", "y"]);
const TEXT: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export const escapedText = (text: string): string => text.replace(/[&<>"']/g, (character) => TEXT[character]!);

/** What the walk needs to know of a node: so that it can be tested without a browser. */
export interface Node {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly childNodes: ArrayLike<Node>;
  readonly attributes?: ArrayLike<{ readonly name: string; readonly value: string }>;
}

const ELEMENT = 1;
const CHARACTERS = 3;

export function written(node: Node): string {
  if (node.nodeType === CHARACTERS) return escapedText(node.nodeValue ?? "");
  if (node.nodeType !== ELEMENT) return "";
  const name = node.nodeName.toLowerCase();
  if (NOT_ON_PAPER.some((one) => hasClass(node, one))) return "";
  const inside = Array.from(node.childNodes).map(written).join("");
  if (name === "button") return inside ? `<span>${inside}</span>` : ""; // its words stay
  if (LEFT_OUT.has(name) || !/^[a-z][a-z0-9]*$/.test(name)) return "";
  const attributes = Array.from(node.attributes ?? [])
    .filter((attribute) => KEPT.has(attribute.name) && !(name === "details" && attribute.name === "open"))
    .map((attribute) => ` ${attribute.name}="${escapedText(attribute.value)}"`)
    .join("");
  // Nothing stays folded on paper.
  return `<${name}${attributes}${name === "details" ? " open" : ""}>${VOID.has(name) && !inside ? "" : `${inside}</${name}>`}`;
}

function hasClass(node: Node, wanted: string): boolean {
  return Array.from(node.attributes ?? []).some(({ name, value }) => name === "class" && value.split(" ").includes(wanted));
}

/** The whole file. `style` is our own. */
export function pageOf(title: string, style: string, article: Node, theme: string): string {
  return `<!doctype html>
<html lang="en" data-theme="${escapedText(theme)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapedText(title)}</title>
<style>${style.replaceAll("</", "<\\/")}</style>
</head>
<body>
${written(article)}
</body>
</html>
`;
}
