// Keeps the readings of one recording up to date while they are looked at, and gets more of them where somebody looks closer.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Client } from "../../shared/server/api";
import { fromSeconds } from "../../shared/text/format";
import { isHidden, onVisibilityChange } from "../../shared/page/host";
import { Poller } from "../../shared/server/poller";
import type { TelemetryAnswer } from "../../shared/report";
import { Feed } from "./feed";

const FAST_MS = 2_000;
const SLOW_MS = 30_000;
const SETTLED_MS = 200; // a zoom goes on for some turns of the wheel

export interface Readings {
  readonly feed: Feed;
  readonly answer: TelemetryAnswer | undefined;
  readonly problem: string | undefined;
}

/** What the server tells of this recording. What fails keeps what was there, and says so. */
export function useReadings(client: Client, id: string): Readings & { readonly put: (answer: TelemetryAnswer) => void } {
  const [answer, setAnswer] = useState<TelemetryAnswer>();
  const [problem, setProblem] = useState<string>();
  const feed = useMemo(() => new Feed((points, between, signal) => client.telemetry(id, points, between, signal)), [id]);
  useEffect(() => {
    const poller = new Poller(async (signal) => {
      const found = await feed.grow(signal);
      if (signal.aborted) return SLOW_MS;
      if (found.kind === "ok") setAnswer(found.value);
      if (found.kind !== "aborted") setProblem(found.kind === "failed" ? found.message : undefined);
      return found.kind === "ok" && found.value.live ? FAST_MS : SLOW_MS;
    });
    const update = () => (isHidden() ? poller.pause() : poller.now());
    update();
    const end = onVisibilityChange(update);
    return () => {
      end();
      poller.pause();
    };
  }, [feed]);
  return { feed, answer, problem, put: setAnswer };
}

/** Asks for a stretch (seconds since 1970) in detail, once the range rests on it. */
export function useDetail({ feed, answer, put }: ReturnType<typeof useReadings>, from: number, to: number): void {
  const missing = answer !== undefined && !feed.isFine(fromSeconds(from), fromSeconds(to));
  useEffect(() => {
    if (!missing) return undefined;
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      const found = await feed.detail(fromSeconds(from), fromSeconds(to), leaving.signal);
      if (found.kind === "ok" && !leaving.signal.aborted) put(found.value);
    }, SETTLED_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [feed, missing, from, to]);
}
