// The changed conditions of a prediction, as the address and the server spell them.

export const FIELDS = ["device", "workers", "batch", "precision", "link"] as const;
export type Field = (typeof FIELDS)[number];

/** The conditions. "" means as recorded. */
export type Conditions = Readonly<Record<Field, string>>;

export const AS_RECORDED: Conditions = { device: "", workers: "", batch: "", precision: "", link: "" };

const COUNTS: ReadonlySet<Field> = new Set(["workers", "batch"] as const);
const MAX_LENGTH = 120; // of a value

/** "device=NVIDIA+H200&workers=4": the changed fields in a fixed order, or "". */
export function conditionsText(conditions: Conditions): string {
  const changed = FIELDS.map((field) => [field, conditions[field].trim()]).filter(([, value]) => value !== "");
  return new URLSearchParams(changed as [string, string][]).toString();
}

/** Parses the text. Unknown fields and invalid counts are ignored. */
export function parseConditions(text: string | undefined): Conditions {
  const values = new URLSearchParams(text ?? "");
  const read = (field: Field): string => {
    const value = (values.get(field) ?? "").trim().slice(0, MAX_LENGTH);
    return COUNTS.has(field) && !/^\d{1,10}$/.test(value) ? "" : value;
  };
  return Object.fromEntries(FIELDS.map((field) => [field, read(field)])) as Conditions;
}
