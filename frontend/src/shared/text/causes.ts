// Titles of causes, as the reports that contain them name them.
import type { Finding, Report } from "../report";
import { title } from "./identifier";

type Findings = Pick<Report, "findings">;

/** The finding of a cause in a report. The findings of telemetry are in no trace's report. */
export function findingOf(report: Findings | undefined, cause: string): Finding | undefined {
  return report?.findings.find((finding) => finding.cause === cause);
}

/** The title of a cause in the first report that contains it, else its identifier as text. */
export function causeTitle(cause: string, ...reports: readonly (Findings | undefined)[]): string {
  return reports.map((report) => findingOf(report, cause)?.title).find(Boolean) ?? title(cause);
}
