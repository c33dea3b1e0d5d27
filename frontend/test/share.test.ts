import assert from "node:assert/strict";
import { test } from "node:test";
import { safe } from "../src/files";
import { escaped, markdown } from "../src/share/markdown";
import { pageOf, written, type Node } from "../src/share/page";
import { report } from "./recordings";

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
    element("button", {}, text("for example here")),
    element("details", {}, element("summary", {}, text("more"))),
  );
  const saved = written(page);
  assert.equal(
    saved,
    '<article class="a&quot;b"><h1>&lt;img src=x onerror=alert(1)&gt;</h1><img><span>for example here</span><details open><summary>more</summary></details></article>',
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
    stretches: [stretch(0, 300e9, "Compute", "none"), stretch(300e9, 540e9, "Waiting | for data", "critical")],
    unprofiled: { step_ns: 1e8, steps: 50, ratio: 1.2, sentence: "Without a profiler a step takes 100 ms." },
  });
  assert.ok(said.includes("| 5:00 | 4 min 0 s | Waiting \\| for data | 40.0 % | Critical |"));
  assert.ok(said.includes("Without a profiler a step takes 100 ms."));
});
