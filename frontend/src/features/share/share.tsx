// Passing a report on: its address, as Markdown, as JSON, as one page that needs no server.
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../../shared/page/clipboard";
import { save } from "../../shared/page/download";
import { fileStem, runName } from "../../shared/text/names";
import { address } from "../../shared/page/host";
import type { Report } from "../../shared/report";
import { useSaying } from "../../shared/widgets/temporary_message";
import { markdown } from "../diagnosis/markdown";
import { pageOf } from "./html_page";
import { allStyle } from "../../shared/page/style_sheet";
import { Icon } from "../../shared/widgets/icon";

export function Share({ report }: { report: Report }) {
  const root = useRef<HTMLDetailsElement>(null);
  const [said, say] = useSaying();
  useEffect(() => {
    const close = (event: Event) => {
      const away = event instanceof KeyboardEvent ? event.key === "Escape" : !root.current?.contains(event.target as globalThis.Node);
      if (!away || !root.current?.open) return;
      root.current.open = false;
      if (event instanceof KeyboardEvent) root.current.querySelector("summary")?.focus();
    };
    const events = ["pointerdown", "focusin", "keydown"] as const;
    for (const event of events) document.addEventListener(event, close);
    return () => {
      for (const event of events) document.removeEventListener(event, close);
    };
  }, []);

  const name = `${runName(report.run)}_${fileStem(report.source)}`;
  const copy = async (text: string, what: string) => say((await copyText(text)) ? `${what} copied` : "The browser does not allow copying");
  const done = (action: () => void) => () => {
    action();
    if (!root.current) return;
    root.current.open = false;
    root.current.querySelector("summary")?.focus(); // the button that had the focus is folded away
  };
  const page = () => {
    const article = root.current?.closest("article");
    if (!article) return;
    const theme = document.documentElement.dataset["theme"] ?? "light";
    const title = report.verdict?.headline ?? name;
    save(`${name}.html`, new Blob([pageOf(title, allStyle(), article, theme)], { type: "text/html" }));
  };
  return (
    <div class="share">
      <span class="muted" role="status">
        {said}
      </span>
      <details ref={root}>
        <summary>
          <Icon name="share" /> Share
        </summary>
        <div class="menu">
          <button type="button" onClick={done(() => void copy(address(), "Address"))}>Copy the address of this view</button>
          <button type="button" onClick={done(() => void copy(markdown(report), "Markdown"))}>Copy as Markdown</button>
          <button type="button" onClick={done(() => save(`${name}.json`, new Blob([JSON.stringify({ reports: [report] }, null, 1)], { type: "application/json" })))}>
            Download the report as JSON
          </button>
          <button type="button" onClick={done(page)}>Download this page as one HTML file</button>
        </div>
      </details>
    </div>
  );
}
