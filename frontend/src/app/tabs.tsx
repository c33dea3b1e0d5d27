// The tabs of a training, one per view. The arrow keys move between them. A view that the shown recording does not have
// opens with another one of the training; if none has it, its tab is disabled and says why.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Report, RunEntry } from "../shared/report";
import type { Session } from "../shared/run/session";
import { partName, type TrainingEntry } from "../shared/run/trainings";
import { VIEWS, type View } from "../shared/run/views";
import { nextInTabs } from "../shared/widgets/list_navigation";
import { missingBecause, recordingFor, titleOf } from "./available_views";

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly training: TrainingEntry | undefined;
  readonly session: Session;
  readonly view: View;
}

export function Tabs({ report, entry, training, session, view }: Props) {
  const members = training?.members ?? [entry];
  const root = useRef<HTMLDivElement>(null);
  const open = (each: View) => {
    if (missingBecause(each, report, entry, members) === undefined) session.open(each);
  };
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
  const onKeyDown = (event: KeyboardEvent) => {
    const tabs = [...(root.current?.querySelectorAll<HTMLElement>("[role=tab]") ?? [])];
    const target = nextInTabs(event.key, tabs.findIndex((tab) => tab === document.activeElement), VIEWS.length);
    if (target === undefined) return;
    event.preventDefault();
    open(VIEWS[target]!);
    tabs[target]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views of this training" ref={root} onKeyDown={onKeyDown}>
      {VIEWS.map((each) => {
        const missing = missingBecause(each, report, entry, members);
        const opened = recordingFor(each, entry, members);
        const title = missing ?? (training && opened !== entry ? `Shows another recording of this training: ${partName(opened, training)}` : undefined);
        return (
          <button
            key={each}
            type="button"
            role="tab"
            aria-selected={each === view}
            {...(each === view ? { "aria-controls": "panel" } : {})}
            {...(missing === undefined ? {} : { "aria-disabled": true })}
            {...(title === undefined ? {} : { "aria-description": title, title })}
            tabIndex={each === view ? 0 : -1}
            onClick={() => open(each)}
          >
            {titleOf(each)}
          </button>
        );
      })}
    </div>
  );
}
