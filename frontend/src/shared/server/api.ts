// The plugin's JSON routes (tb_bottleneck/plugin/http_api.md).
import type { ComparisonAnswer, DeviceList, JobAnswer, Ledger, Pending, ReportAnswer, RunList, SeriesAnswer, TelemetryAnswer, TimelineAnswer, TreeAnswer, WhatIfAnswer } from "../report";
import type { LiveAnswer } from "../live";
import type { Attempt } from "./result";

/** Responses that are cached, to be revalidated with If-None-Match or shown again at once: the list and the latest reports. */
const CACHE_SIZE = 24;
const TIMEOUT_MS = 20_000;

// Relative URLs: the page's <base> ends in `data/plugin/tb_bottleneck/`, also under --path_prefix.
const RUNS_URL = "runs";
const withId = (route: string, id: string) => `${route}?id=${encodeURIComponent(id)}`;
const range = (begin: number, end: number) => `&begin=${Math.round(begin)}&end=${Math.round(end)}`;

/** A range of time, ns since 1970. An absent end is open. */
export interface TimeRange {
  readonly since?: number;
  readonly until?: number;
}

interface CacheEntry {
  readonly etag: string;
  readonly value: unknown;
}

type Guard<T> = (value: unknown) => value is T;

/** Sends the requests. An unchanged response is the same object as before, so that nothing is drawn again. */
export class Client {
  private readonly cache = new Map<string, CacheEntry>();

  constructor(private readonly fetcher: typeof fetch) {}

  runs(signal: AbortSignal): Promise<Attempt<RunList>> {
    return this.getCached(RUNS_URL, signal, isRunList);
  }

  report(id: string, signal: AbortSignal): Promise<Attempt<ReportAnswer>> {
    return this.getCached(withId("report", id), signal, isAboutRun<ReportAnswer>);
  }

  /** The latest report response for this recording, if it is cached. */
  cachedReport(id: string): ReportAnswer | undefined {
    const value = this.cache.get(withId("report", id))?.value;
    return isAboutRun<ReportAnswer>(value) ? value : undefined;
  }

  /** The job of a recording; a brief answer has only its verdict. */
  job(id: string, brief: boolean, signal: AbortSignal): Promise<Attempt<JobAnswer>> {
    return this.getCached(withId("job", id) + (brief ? "&brief=1" : ""), signal, isAboutRun<JobAnswer>);
  }

  /** The predicted and the measured gains of fixes. */
  ledger(signal: AbortSignal): Promise<Attempt<Ledger>> {
    return this.get("ledger", signal, isLedger);
  }

  /** The telemetry in (since, until], at most `points` samples of each series. */
  telemetry(id: string, points: number, { since, until }: TimeRange, signal: AbortSignal): Promise<Attempt<TelemetryAnswer>> {
    const from = since === undefined ? "" : `&since=${Math.round(since)}`;
    const to = until === undefined ? "" : `&until=${Math.round(until)}`;
    return this.get(`${withId("telemetry", id)}&points=${points}${from}${to}`, signal, isTelemetry);
  }

  /** The jobs that train now, in brief. */
  live(signal: AbortSignal): Promise<Attempt<LiveAnswer>> {
    return this.getCached("live", signal, isLive);
  }

  /** The job of a run directory, with the figures of its ranks. */
  liveJob(run: string, signal: AbortSignal): Promise<Attempt<LiveAnswer>> {
    return this.get(`live?run=${encodeURIComponent(run)}`, signal, isLive);
  }

  /** Where the time goes, with the parameters of features/where/options.ts. */
  tree(id: string, parameters: string, signal: AbortSignal): Promise<Attempt<TreeAnswer>> {
    return this.get(`${withId("tree", id)}&${parameters}`, signal, isAboutRun<TreeAnswer>);
  }

  /** Recording A against recording B. */
  compare(a: string, b: string, signal: AbortSignal): Promise<Attempt<ComparisonAnswer>> {
    return this.get(`compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, signal, isComparison);
  }

  /** Several recordings as a series, in this order. */
  series(ids: readonly string[], signal: AbortSignal): Promise<Attempt<SeriesAnswer>> {
    return this.get(`series?${ids.map((id) => `id=${encodeURIComponent(id)}`).join("&")}`, signal, isSeries);
  }

  /** The recording under other conditions, as features/compare/what_if/conditions.ts spells them. */
  whatIf(id: string, conditions: string, signal: AbortSignal): Promise<Attempt<WhatIfAnswer>> {
    return this.get(`${withId("what_if", id)}&${conditions}`, signal, isAboutRun<WhatIfAnswer>);
  }

  /** The devices that a prediction can be made for. */
  devices(signal: AbortSignal): Promise<Attempt<DeviceList>> {
    return this.getCached("devices", signal, isDevices);
  }

  /** The range [begin, end) in ns, at the resolution of so many pixels. */
  timeline(id: string, begin: number, end: number, pixels: number, signal: AbortSignal): Promise<Attempt<TimelineAnswer>> {
    return this.get(`${withId("timeline", id)}${range(begin, end)}&pixels=${pixels}`, signal, isAboutRun<TimelineAnswer>);
  }

  /** The whole recording, whose range is not known yet. */
  overview(id: string, pixels: number, signal: AbortSignal): Promise<Attempt<TimelineAnswer>> {
    return this.get(`${withId("timeline", id)}&pixels=${pixels}`, signal, isAboutRun<TimelineAnswer>);
  }

  /** A range as a trace file of its own: its bytes. */
  slice(id: string, begin: number, end: number, signal: AbortSignal): Promise<Attempt<ArrayBuffer>> {
    return this.send(`${withId("slice", id)}${range(begin, end)}`, signal, {}, readBytes);
  }

  private async getCached<T>(url: string, signal: AbortSignal, isT: Guard<T>): Promise<Attempt<T>> {
    const entry = this.cache.get(url);
    return this.send(url, signal, entry ? { "If-None-Match": entry.etag } : {}, async (response) => {
      const value: unknown = response.status === 304 ? entry?.value : await readJson(response);
      if (!isT(value)) throw new Error(UNKNOWN_FORM);
      if (value !== entry?.value) this.store(url, response.headers.get("ETag"), value);
      return value;
    });
  }

  private get<T>(url: string, signal: AbortSignal, isT: Guard<T>): Promise<Attempt<T>> {
    return this.send(url, signal, {}, async (response) => {
      const value = await readJson(response);
      if (!isT(value)) throw new Error(UNKNOWN_FORM);
      return value;
    });
  }

  private async send<T>(
    url: string,
    signal: AbortSignal,
    headers: Record<string, string>,
    read: (response: Response) => Promise<T>,
  ): Promise<Attempt<T>> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const response = await this.fetcher(url, { headers, signal: AbortSignal.any([signal, timeout]) }).catch(unreachable);
      if (response.status === ACCEPTED) return { kind: "pending", value: await readPending(response) };
      return { kind: "ok", value: await read(response) };
    } catch (error) {
      if (signal.aborted) return { kind: "aborted" };
      if (timeout.aborted) return { kind: "failed", message: `No answer within ${TIMEOUT_MS / 1000} seconds.` };
      return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
    }
  }

  private store(url: string, etag: string | null, value: unknown): void {
    this.cache.delete(url);
    if (etag === null) return;
    this.cache.set(url, { etag, value });
    const [oldest] = this.cache.keys();
    if (this.cache.size > CACHE_SIZE && oldest !== undefined) this.cache.delete(oldest);
  }
}

const UNKNOWN_FORM = "The server’s answer has a form that this tab does not know. Reload the page: it may be older than the server.";
const ACCEPTED = 202;

/** Replaces the error of fetch() for an unreachable server, which differs between browsers. */
function unreachable(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  throw new Error("TensorBoard could not be reached: it was stopped, or the connection to it is lost.");
}

/** Throws the server's message if the response is not a success. */
async function check(response: Response): Promise<void> {
  if (response.ok) return;
  const plain = response.headers.get("Content-Type")?.startsWith("text/plain") ?? false;
  throw new Error((plain && (await response.text()).trim()) || `The server answered ${response.status}.`);
}

async function readJson(response: Response): Promise<unknown> {
  await check(response);
  return response.json();
}

async function readBytes(response: Response): Promise<ArrayBuffer> {
  await check(response);
  return response.arrayBuffer();
}

/** The body of a 202. Throws if it is not a Pending. */
async function readPending(response: Response): Promise<Pending> {
  const value = await readJson(response);
  if (!isPending(value)) throw new Error(UNKNOWN_FORM);
  return value;
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

function isPending(value: unknown): value is Pending {
  return isObject(value) && typeof value["state"] === "string" && typeof value["progress"] === "number";
}

function isRunList(value: unknown): value is RunList {
  return isObject(value) && Array.isArray(value["runs"]) && Array.isArray(value["trainings"]) && Array.isArray(value["problems"]);
}

function isAboutRun<T>(value: unknown): value is T {
  return isObject(value) && typeof value["id"] === "string" && typeof value["state"] === "string";
}

function isComparison(value: unknown): value is ComparisonAnswer {
  return isObject(value) && typeof value["a"] === "string" && typeof value["b"] === "string" && typeof value["state"] === "string";
}

function isSeries(value: unknown): value is SeriesAnswer {
  return isObject(value) && Array.isArray(value["ids"]) && typeof value["state"] === "string";
}

function isLedger(value: unknown): value is Ledger {
  return isObject(value) && Array.isArray(value["rows"]);
}

function isDevices(value: unknown): value is DeviceList {
  return isObject(value) && Array.isArray(value["names"]);
}

function isTelemetry(value: unknown): value is TelemetryAnswer {
  return isObject(value) && typeof value["id"] === "string" && Array.isArray(value["series"]) && Array.isArray(value["bands"]);
}

function isLive(value: unknown): value is LiveAnswer {
  return isObject(value) && Array.isArray(value["jobs"]);
}
