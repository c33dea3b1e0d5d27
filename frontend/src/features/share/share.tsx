// The share menu: the address, JSON, or an HTML file that needs no server.
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../../shared/page/clipboard";
import { save } from "../../shared/page/download";
import { address } from "../../shared/page/host";
import { allStyle } from "../../shared/page/style_sheet";
import type { Report } from "../../shared/report";
import { fileStem, leadOf, runName } from "../../shared/text/names";
import { Icon } from "../../shared/widgets/icon";
import { useTemporaryMessage } from "../../shared/widgets/temporary_message";

interface Props {
  readonly report: Report;
}

export function Share({ report }: Props) {
  const root = useRef<HTMLDetailsElement>(null);
  const [message, setMessage] = useTemporaryMessage();
  useEffect(() => {
    const close = (event: Event) => {
      const leaves = event instanceof KeyboardEvent ? event.key === "Escape" : !root.current?.contains(event.target as globalThis.Node);
      if (!leaves || !root.current?.open) return;
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
  const copy = async (text: string, what: string) => setMessage((await copyText(text)) ? `${what} copied` : "The browser does not allow copying");
  const closeAfter = (action: () => unknown) => () => {
    action();
    if (!root.current) return;
    root.current.open = false;
    root.current.querySelector("summary")?.focus(); // the button that had the focus is hidden now
  };
  const savePage = async () => {
    const article = root.current?.closest("article");
    const { htmlPage } = await import("./html_page"); // the first screen does not need it
    if (!article) return;
    const theme = document.documentElement.dataset["theme"] ?? "light";
    const title = report.verdict ? leadOf(report.verdict) : name;
    save(`${name}.html`, new Blob([htmlPage(title, allStyle(), article, theme)], { type: "text/html" }));
  };
  return (
    <div class="share">
      <span class="muted" role="status">
        {message}
      </span>
      <details ref={root}>
        <summary>
          <Icon name="share" /> Share
        </summary>
        <div class="menu">
          <button type="button" onClick={closeAfter(() => void copy(address(), "Address"))}>Copy the address of this view</button>
          <button type="button" onClick={closeAfter(() => save(`${name}.json`, new Blob([JSON.stringify({ reports: [report] }, null, 1)], { type: "application/json" })))}>
            Download the report as JSON
          </button>
          <button type="button" onClick={closeAfter(savePage)}>Download this page as one HTML file</button>
        </div>
      </details>
    </div>
  );
}
