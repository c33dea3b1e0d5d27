// The views of a recording: a list of tabs that is walked with the arrow keys.
import { useLayoutEffect, useRef } from "preact/hooks";
import { movedAlong } from "../shared/widgets/list_navigation";
import type { Report, RunEntry } from "../shared/report";
import type { Session } from "./session";
import type { View } from "./state";

export const TAB_NAMES: Readonly<Record<View, string>> = {
  diagnosis: "Diagnosis",
  timeline: "Timeline",
  tables: "What ran",
  roofline: "Roofline",
  ranks: "Ranks",
  live: "Telemetry",
  compare: "Compare",
  whatif: "What if",
};

/** The views that there is something to see in. */
export function viewsOf(report: Report, entry: RunEntry): readonly View[] {
  if (entry.evidence_source === "telemetry") return ["diagnosis", "live"];
  const seen: View[] = ["diagnosis"];
  if (report.health?.status !== "unreadable") seen.push("timeline", "tables", "roofline");
  if ((report.world_size ?? 1) > 1) seen.push("ranks");
  seen.push("compare");
  if (report.verdict) seen.push("whatif");
  return seen;
}

/** The view that is shown: the one that was asked for, unless this recording has no such view. */
export function shownView(asked: View, report: Report, entry: RunEntry): View {
  return viewsOf(report, entry).includes(asked) ? asked : "diagnosis";
}

interface Props {
  readonly report: Report;
  readonly entry: RunEntry;
  readonly session: Session;
  readonly view: View;
}

export function Tabs({ report, entry, session, view }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const views = viewsOf(report, entry);
  // Where it is narrow the chosen tab may be out of sight; the page itself stays where it is.
  useLayoutEffect(() => {
    const list = root.current;
    if (!list) return undefined;
    const bring = () => {
      const tab = list.querySelector<HTMLElement>("[aria-selected=true]");
      if (tab) list.scrollLeft = tab.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
    };
    bring();
    const resized = new ResizeObserver(bring); // a phone is turned
    resized.observe(list);
    return () => resized.disconnect();
  }, [view]);
  if (views.length === 1) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const target = movedAlong(event.key, views.indexOf(view), views.length);
    if (target === undefined) return;
    event.preventDefault();
    session.open(views[target]!);
    root.current?.querySelectorAll<HTMLElement>("[role=tab]")[target]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views of this recording" ref={root} onKeyDown={onKeyDown}>
      {views.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          aria-selected={one === view}
          {...(one === view ? { "aria-controls": "panel" } : {})}
          tabIndex={one === view ? 0 : -1}
          onClick={() => session.open(one)}
        >
          {TAB_NAMES[one]}
        </button>
      ))}
    </div>
  );
}
