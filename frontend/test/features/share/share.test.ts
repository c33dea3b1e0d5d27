import assert from "node:assert/strict";
import { test } from "node:test";
import { reportMarkdown } from "../../../src/features/diagnosis/markdown";
import { htmlPage, nodeHtml, type Node } from "../../../src/features/share/html_page";
import { safe } from "../../../src/shared/page/download";
import { escaped } from "../../../src/shared/text/markdown";
import { report } from "../../recordings";

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

test("Markdown contains the headline, the account and the fix, and names cannot become markup", () => {
  const full = {
    ...report("host_1.17.pt.trace.json"),
    verdict: { regime: "input", share: 0.4, severity: "critical", confidence: "high", headline: "The GPU <b>waits</b>.", title: "Waiting", action: "" },
    account: [{ regime: "input", share: 0.4, ns_per_step: 4e7, title: "Waiting | for data", meaning: "" }],
    findings: [{
      cause: "no_workers", regime: "input", cost_share: 0.4, title: "No workers", evidence: [], where: [],
      fix: { summary: "Use *workers*.", code: "DataLoader(num_workers=2)\n```", confirm: "", action: "" },
    }],
  };
  const markdown = reportMarkdown(full);
  assert.ok(markdown.startsWith("## The GPU \\<b\\>waits\\</b\\>."));
  assert.ok(markdown.includes("| Waiting \\| for data | 40.0 % | 40.0 ms |"));
  assert.ok(markdown.includes("````python\nDataLoader(num_workers=2)\n```\n````"));
  assert.ok(!markdown.includes("\u00a0"));
  assert.equal(escaped("[a](b)\n`c`"), "\\[a\\](b) \\`c\\`");
});

test("Markdown makes no link or mention of a name", () => {
  for (const live of ["@team", "https://evil.example", "www.evil.example", "a/b#12", "GH-7"]) {
    const shown = escaped(live);
    assert.ok(!shown.replaceAll("\\", "").includes(live), shown);
    assert.equal(shown.replaceAll("\u200b", "").replaceAll("\\", ""), live);
  }
  assert.equal(escaped("a\u001b[2J\u202eb"), "a\\[2Jb");
});


test("a file name is never a path", () => {
  assert.equal(safe("../../etc/pass wd"), "_.._etc_pass_wd");
  assert.equal(safe("///"), "_");
  assert.equal(safe(""), "download");
});

test("Markdown contains the phases of a run, and what its telemetry says about the profiler", () => {
  const phase = (begin_ns: number, end_ns: number, title: string, severity: string) => ({ begin_ns, end_ns, regime: "input", share: 0.4, severity, title });
  const markdown = reportMarkdown({
    ...report("events"),
    phases: [phase(0, 300e9, "Compute", "none"), phase(300e9, 540e9, "Waiting | for data", "critical")],
    unprofiled: { step_ns: 1e8, steps: 50, ratio: 1.2, step_times_ns: [], sentence: "Without a profiler a step takes 100 ms." },
  });
  assert.ok(markdown.includes("| 5:00 | 4 min 0 s | Waiting \\| for data | 40.0 % | Critical |"));
  assert.ok(markdown.includes("Without a profiler a step takes 100 ms."));
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

test("Markdown states the mean step, which shares and gains refer to, before the median", () => {
  const window = { steps: 6, basis: "profiler_step", step_ns: { median: 4e7, p10: 3e7, p90: 9e7, mean: 5e7 }, begin_ns: 0, end_ns: 3e8, step_times_ns: [] };
  const markdown = reportMarkdown({ ...report("a"), window });
  assert.ok(markdown.includes("6 steps (marked by prof.step()), mean step, profiled: 50.0 ms, p10 30.0 ms, median 40.0 ms, p90 90.0 ms"));
});

test("Markdown says why there is no verdict, uses the singular for one step, and lists what was not judged", () => {
  const window = { steps: 1, basis: "profiler_step", step_ns: { median: 4e7, p10: 4e7, p90: 4e7, mean: 4e7 }, begin_ns: 0, end_ns: 4e7, step_times_ns: [] };
  const health = { status: "incomplete", reasons: [{ code: "warmup", detail: "It starts up.", fix: "schedule(wait=1)" }] };
  const regimes = [
    { regime: "input", status: "abstains", share: 0, because: "No loader was recorded.", title: "Waiting for data" },
    { regime: "sync", status: "clear", share: 0, because: "No wait.", title: "Host waits" },
  ];
  const markdown = reportMarkdown({ ...report("a"), health, window, regimes });
  assert.ok(markdown.startsWith("## This recording is incomplete, so there is no verdict.\n"));
  assert.ok(markdown.includes("1 step (marked by prof.step()), step, profiled: 40.0 ms"));
  assert.ok(markdown.includes("> It starts up.\n\nTo fix it:\n\n```python\nschedule(wait=1)\n```"));
  assert.ok(markdown.includes("### Not judged\n\n- Cannot tell: Waiting for data. No loader was recorded."));
  assert.ok(!markdown.includes("Host waits"));
  assert.ok(reportMarkdown({ ...report("a"), window: { ...window, basis: "whole" } }).includes("40.0 ms (the whole recording)"));
});
