// The views of a recording, in the order of their tabs. app/available_views.ts says when a recording has them.

/** The names are part of the address. "live" is the view over time. */
export const VIEWS = ["diagnosis", "tree", "timeline", "memory", "live", "job", "compare"] as const;
export type View = (typeof VIEWS)[number];

/** Names in older addresses. */
const RENAMED: ReadonlyMap<string, View> = new Map([
  ["ranks", "job"],
  ["tables", "tree"],
  ["roofline", "tree"],
  ["whatif", "compare"],
]);

/** The view with this name, or the diagnosis. */
export const viewNamed = (name = ""): View => RENAMED.get(name) ?? VIEWS.find((view) => view === name) ?? "diagnosis";
