import assert from "node:assert/strict";
import { test } from "node:test";
import { htmlPage, nodeHtml, type Node } from "../../../src/features/share/html_page";
import { safe } from "../../../src/shared/page/download";

const text = (nodeValue: string): Node => ({ nodeType: 3, nodeName: "#text", nodeValue, childNodes: [] });

function element(nodeName: string, attributes: Readonly<Record<string, string>>, ...childNodes: readonly Node[]): Node {
  const named = Object.entries(attributes).map(([name, value]) => ({ name, value }));
  return { nodeType: 1, nodeName: nodeName.toUpperCase(), nodeValue: null, childNodes, attributes: named };
}

test("the saved page contains text as text, and nothing that is executed or fetched", () => {
  const page = element("article", { class: "a\"b", onclick: "alert(1)" },
    element("h1", {}, text("<img src=x onerror=alert(1)>")),
    element("script", {}, text("alert(1)")),
    element("img", { src: "x" }),
    element("button", { class: "copy" }, text("Copy")),
    element("div", { class: "share" }, text("Share")),
    element("button", { class: "link" }, text("for example here"), element("span", { class: "visually-hidden" }, text(": show it"))),
    element("button", {}, text("Show 25 more")),
    element("details", {}, element("summary", {}, text("more"))),
  );
  const saved = nodeHtml(page);
  assert.equal(
    saved,
    '<article class="a&quot;b"><h1>&lt;img src=x onerror=alert(1)&gt;</h1><span class="link">for example here</span><details open><summary>more</summary></details></article>',
  );
  const whole = htmlPage("<t>", "a{}</style><script>", page, "dark");
  assert.equal(whole.split("</style>").length, 2, "the style cannot be closed early");
  assert.ok(whole.includes("default-src 'none'"));
});

test("a file name is never a path", () => {
  assert.equal(safe("../../etc/pass wd"), "_.._etc_pass_wd");
  assert.equal(safe("///"), "_");
  assert.equal(safe(""), "download");
});

test("the saved page contains canvases as pictures, and no controls", () => {
  const canvas: Node = { ...element("canvas", { width: "1600" }), toDataURL: () => "data:image/png;base64,AAAA", clientWidth: 800 };
  const saved = nodeHtml(
    element("div", {},
      element("div", { class: "canvas", role: "group", "aria-label": "arrow keys move", tabindex: "0" }, canvas),
      element("div", { class: "chart" }, element("div", { class: "u-wrap", style: "width: 800px" }, canvas, element("div", { class: "u-over" }))),
      element("button", { class: "column", tabindex: "-1", "aria-label": "Step 1" }, element("span", { style: "flex-grow: 1" })),
      element("th", {}, element("button", {}, text("Time"))),
      element("p", { class: "muted on-screen" }, text("Drag to move")),
      element("g", {}, element("path", { d: "M0 0" }), element("text", { x: "1" }, text("20 ms"))), // an open path would swallow the text
    ),
  );
  const drawn = '<img alt="" src="data:image/png;base64,AAAA" width="800">';
  assert.equal(
    saved,
    `<div><div class="canvas">${drawn}</div>${drawn}<span class="column"><span style="flex-grow: 1"></span></span><th><span>Time</span></th><g><path d="M0 0"></path><text x="1">20 ms</text></g></div>`,
  );
  assert.equal(nodeHtml({ ...canvas, toDataURL: () => "javascript:alert(1)" }), "", "only PNG data URLs");
});
