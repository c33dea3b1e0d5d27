// The job that the shown recording is a rank of.
import { useEffect, useState } from "preact/hooks";
import type { Job, Report, RunEntry } from "../shared/report";
import { isTrace } from "../shared/run/groups";
import type { Client } from "../shared/server/api";
import { poll } from "../shared/server/polling";

/** The verdict of the job; undefined until it is known, and if there is none. */
export function useJob(client: Client | undefined, report: Report, entry: RunEntry | undefined): Job | undefined {
  const [found, setFound] = useState<{ readonly id: string; readonly job: Job | undefined }>();
  const id = entry && isTrace(entry) && (report.world_size ?? 1) > 1 && report.verdict ? entry.id : undefined;
  useEffect(() => {
    if (id === undefined || !client) return undefined;
    const controller = new AbortController();
    void poll(() => client.job(id, true, controller.signal), controller.signal).then((result) => {
      if (result.kind === "ok") setFound({ id, job: result.value.job });
    });
    return () => controller.abort();
  }, [id, client, report]);
  return found?.id === id ? found?.job : undefined;
}
