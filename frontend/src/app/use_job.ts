// The job that the shown recording is a rank of.
import { useEffect, useState } from "preact/hooks";
import type { JobAnswer, Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { Client } from "../shared/server/api";
import { poll } from "../shared/server/polling";

/** The verdict of the job; undefined if the recording is not a rank of several, or the request failed. */
export function useJob(client: Client | undefined, report: Report, entry: RunEntry | undefined): JobAnswer | "pending" | undefined {
  const [found, setFound] = useState<{ readonly id: string; readonly answer: JobAnswer | undefined }>();
  const id = entry && isTrace(entry) && (report.world_size ?? 1) > 1 && report.verdict ? entry.id : undefined;
  useEffect(() => {
    if (id === undefined || !client) return undefined;
    const controller = new AbortController();
    void poll(() => client.job(id, true, controller.signal), controller.signal).then((result) => {
      if (result.kind !== "aborted") setFound({ id, answer: result.kind === "ok" ? result.value : undefined });
    });
    return () => controller.abort();
  }, [id, client, report]);
  if (id === undefined) return undefined;
  return found?.id === id ? found.answer : "pending";
}
