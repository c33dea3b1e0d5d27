// The views of a recording, in the order of their tabs. app/view_registry.tsx says what each of them shows.

/** The names are part of the address. "live" is the telemetry. */
export const VIEWS = ["diagnosis", "tree", "timeline", "tables", "roofline", "memory", "ranks", "live", "compare", "whatif"] as const;
export type View = (typeof VIEWS)[number];

/** The view with this name, or the diagnosis. */
export const viewNamed = (name: string | undefined): View => VIEWS.find((view) => view === name) ?? "diagnosis";
