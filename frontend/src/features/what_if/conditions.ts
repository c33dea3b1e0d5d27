// What of a recording is supposed to be otherwise, as the address and the route spell it.

export const FIELDS = ["device", "workers", "batch", "precision", "link"] as const;
export type Field = (typeof FIELDS)[number];

/** An empty text leaves it as it is. */
export type Supposed = Readonly<Record<Field, string>>;

export const AS_IT_IS: Supposed = { device: "", workers: "", batch: "", precision: "", link: "" };

const COUNTS: ReadonlySet<Field> = new Set(["workers", "batch"] as const);
const LONGEST = 120; // of a name that somebody typed

/** "device=NVIDIA+H200&workers=4": only what is changed, always in the same order; empty where nothing is. */
export function supposedText(supposed: Supposed): string {
  const changed = FIELDS.map((field) => [field, supposed[field].trim()]).filter(([, value]) => value !== "");
  return new URLSearchParams(changed as [string, string][]).toString();
}

/** The same read; what is unknown, and a count that is none, is left out. */
export function supposedIn(text: string | undefined): Supposed {
  const given = new URLSearchParams(text ?? "");
  const read = (field: Field): string => {
    const value = (given.get(field) ?? "").trim().slice(0, LONGEST);
    return COUNTS.has(field) && !/^\d{1,10}$/.test(value) ? "" : value;
  };
  return Object.fromEntries(FIELDS.map((field) => [field, read(field)])) as Supposed;
}
