// The tabs of a recording, one per view. The arrow keys move between them.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Report, RunEntry } from "../shared/report";
import type { Session } from "../shared/run/session";
import type { View } from "../shared/run/views";
import { nextInTabs } from "../shared/widgets/list_navigation";
import { titleOf, viewsOf } from "./view_registry";

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly view: View;
}

export function Tabs({ report, entry, session, view }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const views = viewsOf(report, entry);
  // On a narrow page the selected tab may be out of sight. Only the tab list scrolls, not the page.
  useLayoutEffect(() => {
    const list = root.current;
    if (!list) return undefined;
    const scrollToSelected = () => {
      const tab = list.querySelector<HTMLElement>("[aria-selected=true]");
      if (tab) list.scrollLeft = tab.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
    };
    scrollToSelected();
    const observer = new ResizeObserver(scrollToSelected); // e.g. a phone is rotated
    observer.observe(list);
    return () => observer.disconnect();
  }, [view]);
  if (views.length === 1) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const target = nextInTabs(event.key, views.indexOf(view), views.length);
    if (target === undefined) return;
    event.preventDefault();
    session.open(views[target]!);
    root.current?.querySelectorAll<HTMLElement>("[role=tab]")[target]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views of this recording" ref={root} onKeyDown={onKeyDown}>
      {views.map((each) => (
        <button
          key={each}
          type="button"
          role="tab"
          aria-selected={each === view}
          {...(each === view ? { "aria-controls": "panel" } : {})}
          tabIndex={each === view ? 0 : -1}
          onClick={() => session.open(each)}
        >
          {titleOf(each)}
        </button>
      ))}
    </div>
  );
}
