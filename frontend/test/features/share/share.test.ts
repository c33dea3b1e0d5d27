import assert from "node:assert/strict";
import { test } from "node:test";
import { safe } from "../../../src/shared/page/download";
import { escaped, markdown } from "../../../src/features/diagnosis/markdown";
import { pageOf, written, type Node } from "../../../src/features/share/html_page";
import { report } from "../../recordings";

const text = (nodeValue: string): Node => ({ nodeType: 3, nodeName: "#text", nodeValue, childNodes: [] });

function element(nodeName: string, attributes: Readonly<Record<string, string>>, ...childNodes: readonly Node[]): Node {
  const named = Object.entries(attributes).map(([name, value]) => ({ name, value }));
  return { nodeType: 1, nodeName: nodeName.toUpperCase(), nodeValue: null, childNodes, attributes: named };
}

test("the page that is saved holds texts as texts, and nothing that runs or fetches", () => {
  const page = element("article", { class: "a\"b", onclick: "alert(1)" },
    element("h1", {}, text("<img src=x onerror=alert(1)>")),
    element("script", {}, text("alert(1)")),
    element("img", { src: "x" }),
    element("button", { class: "copy" }, text("Copy")),
    element("div", { class: "share" }, text("Share")),
    element("button", { class: "link" }, text("for example here"), element("span", { class: "spoken" }, text(": show it"))),
    element("button", {}, text("Show 25 more")),
    element("details", {}, element("summary", {}, text("more"))),
  );
  const saved = written(page);
  assert.equal(
    saved,
    '<article class="a&quot;b"><h1>&lt;img src=x onerror=alert(1)&gt;</h1><span class="link">for example here</span><details open><summary>more</summary></details></article>',
  );
  const whole = pageOf("<t>", "a{}</style><script>", page, "dark");
  assert.equal(whole.split("</style>").length, 2, "style cannot be left");
  assert.ok(whole.includes("default-src 'none'"));
});

test("Markdown holds the headline, the account and the fix, and names cannot become markup", () => {
  const full = {
    ...report("host_1.17.pt.trace.json"),
    verdict: { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "The GPU <b>waits</b>.", title: "Waiting" },
    account: [{ regime: "input", share: 0.4, ns_per_step: 4e7, title: "Waiting | for data", meaning: "" }],
    findings: [{
      cause: "no_workers", regime: "input", cost_share: 0.4, title: "No workers", evidence: [],
      fix: { summary: "Use *workers*.", code: "DataLoader(num_workers=2)\n```", confirm: "" },
    }],
  };
  const said = markdown(full);
  assert.ok(said.startsWith("## The GPU \\<b\\>waits\\</b\\>."));
  assert.ok(said.includes("| Waiting \\| for data | 40.0 % | 40.0 ms |"));
  assert.ok(said.includes("````python\nDataLoader(num_workers=2)\n```\n````"));
  assert.ok(!said.includes("\u00a0"));
  assert.equal(escaped("[a](b)\n`c`"), "\\[a\\](b) \\`c\\`");
});

test("a file's name is no path", () => {
  assert.equal(safe("../../etc/pass wd"), "_.._etc_pass_wd");
  assert.equal(safe("///"), "_");
  assert.equal(safe(""), "download");
});

test("Markdown tells how a run went over time, and what its own telemetry says of the profiler", () => {
  const stretch = (begin_ns: number, end_ns: number, title: string, severity: string) => ({ begin_ns, end_ns, regime: "input", share: 0.4, severity, title });
  const said = markdown({
    ...report("events"),
    phases: [stretch(0, 300e9, "Compute", "none"), stretch(300e9, 540e9, "Waiting | for data", "critical")],
    unprofiled: { step_ns: 1e8, steps: 50, ratio: 1.2, sentence: "Without a profiler a step takes 100 ms." },
  });
  assert.ok(said.includes("| 5:00 | 4 min 0 s | Waiting \\| for data | 40.0 % | Critical |"));
  assert.ok(said.includes("Without a profiler a step takes 100 ms."));
});

/** It was said to hold the page, and the charts, which are painted, were missing; the columns of steps fell in on themselves. */
test("the page that is saved holds what is painted as pictures, and drops what only works the page", () => {
  const canvas: Node = { ...element("canvas", { width: "1600" }), toDataURL: () => "data:image/png;base64,AAAA", clientWidth: 800 };
  const saved = written(
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
  assert.equal(written({ ...canvas, toDataURL: () => "javascript:alert(1)" }), "", "nothing but a picture");
});

/** A pasted report said "1 steps, p10 …" of one step, "Incomplete" alone where there is no verdict, and nothing of what was not told. */
test("Markdown says why there is no verdict, counts one step as one, and holds what is left open", () => {
  const window = { steps: 1, basis: "profiler_step", step_ns: { median: 4e7, p10: 4e7, p90: 4e7 }, begin_ns: 0, end_ns: 4e7, step_times_ns: [] };
  const health = { status: "incomplete", reasons: [{ code: "warmup", detail: "It starts up.", fix: "schedule(wait=1)" }] };
  const regimes = [
    { regime: "input", status: "abstains", share: 0, because: "No loader was recorded.", title: "Waiting for data" },
    { regime: "sync", status: "clear", share: 0, because: "No wait.", title: "Host waits" },
  ];
  const said = markdown({ ...report("a"), health, window, regimes });
  assert.ok(said.startsWith("## This recording is incomplete, so there is no verdict.\n"));
  assert.ok(said.includes("1 step of 40.0 ms (marked by prof.step())"));
  assert.ok(said.includes("> It starts up.\n\nTo mend it:\n\n```python\nschedule(wait=1)\n```"));
  assert.ok(said.includes("### What this leaves open\n\n- Cannot tell: Waiting for data. No loader was recorded."));
  assert.ok(!said.includes("Host waits"));
  assert.ok(markdown({ ...report("a"), window: { ...window, basis: "whole" } }).includes("40.0 ms (the whole recording as one)"));
});
