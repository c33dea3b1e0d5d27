// Hooks that keep the telemetry of one recording up to date while it is shown, and load details when the user zooms in.
import { useEffect, useMemo, useState } from "preact/hooks";
import { isHidden, onVisibilityChange } from "../../shared/page/host";
import type { TelemetryAnswer } from "../../shared/report";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { Poller } from "../../shared/server/poller";
import { fromSeconds } from "../../shared/text/format";
import { Feed } from "./feed";

const FAST_MS = 2_000;
const SLOW_MS = 30_000;
const SETTLED_MS = 200; // a zoom takes several turns of the wheel

export interface TelemetryData {
  readonly feed: Feed;
  readonly data: TelemetryAnswer | undefined;
  readonly problem: string | undefined;
}

/** The telemetry of this recording. After a failure the loaded data stays and `problem` is set. */
export function useTelemetry(client: Client, id: string): TelemetryData & { readonly setData: (data: TelemetryAnswer) => void } {
  const [data, setData] = useState<TelemetryAnswer>();
  const [problem, setProblem] = useState<string>();
  const feed = useMemo(() => new Feed((points, range, signal) => poll(() => client.telemetry(id, points, range, signal), signal)), [id]);
  useEffect(() => {
    const poller = new Poller(async (signal) => {
      const result = await feed.update(signal);
      if (signal.aborted) return SLOW_MS;
      if (result.kind === "ok") setData(result.value);
      if (result.kind !== "aborted") setProblem(result.kind === "failed" ? result.message : undefined);
      return result.kind === "ok" && result.value.live ? FAST_MS : SLOW_MS;
    });
    const update = () => (isHidden() ? poller.pause() : poller.now());
    update();
    const removeListener = onVisibilityChange(update);
    return () => {
      removeListener();
      poller.pause();
    };
  }, [feed]);
  return { feed, data, problem, setData };
}

/** Loads a range (seconds since 1970) in detail once the user stops moving. */
export function useDetail({ feed, data, setData }: ReturnType<typeof useTelemetry>, from: number, to: number): void {
  const missing = data !== undefined && !feed.isDetailed(fromSeconds(from), fromSeconds(to));
  useEffect(() => {
    if (!missing) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      const result = await feed.loadDetail(fromSeconds(from), fromSeconds(to), controller.signal);
      if (result.kind === "ok" && !controller.signal.aborted) setData(result.value);
    }, SETTLED_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [feed, missing, from, to]);
}
