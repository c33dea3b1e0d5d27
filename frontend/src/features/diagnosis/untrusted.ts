// The verdict of an evidence source that the report does not trust, as a sentence with the reason.
import type { Report } from "../../shared/report";

export function untrusted({ others, verdict }: Report): readonly string[] {
  return others
    .filter((other) => !other.trusted && other.verdict?.regime !== verdict?.regime)
    .map((other) => `The ${other.witness} alone says: ${other.verdict?.headline ?? ""} ${other.because}`);
}
