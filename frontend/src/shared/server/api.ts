// The plugin's JSON routes (tb_bottleneck/plugin/http_api.md). Failures come back as values, never as exceptions.
import type { ComparisonAnswer, DeviceList, Pending, RanksAnswer, ReportAnswer, RunList, SeriesAnswer, TablesAnswer, TelemetryAnswer, TimelineAnswer, WhatIfAnswer } from "../report";

export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "pending"; readonly value: Pending } // the server is still computing it: ask again, see polling.ts
  | { readonly kind: "failed"; readonly message: string } // no answer, or not one that we can use
  | { readonly kind: "aborted" }; // we no longer want it

/** The answer to a request that was repeated until it was not pending. */
export type Settled<T> = Exclude<Answer<T>, { readonly kind: "pending" }>;

/** Answers that are kept to be confirmed by a 304, or shown again at once: the list and the latest reports. */
const REMEMBERED = 24;
const TIMEOUT_MS = 20_000;

// Relative on purpose: the page's <base> ends in `data/plugin/tb_bottleneck/`, whatever --path_prefix says.
const RUNS_URL = "runs";
const about = (route: string, id: string) => `${route}?id=${encodeURIComponent(id)}`;
const within = (begin: number, end: number) => `&begin=${Math.round(begin)}&end=${Math.round(end)}`;

/** Ends of a stretch of time; one that is absent is open. */
export interface Between {
  readonly since?: number;
  readonly until?: number;
}

interface Kept {
  readonly etag: string;
  readonly value: unknown;
}

type Form<T> = (value: unknown) => value is T;

/** Asks the server; an unchanged answer is the same object as before, so nothing is drawn again. */
export class Client {
  private readonly kept = new Map<string, Kept>();

  constructor(private readonly fetcher: typeof fetch) {}

  runs(signal: AbortSignal): Promise<Answer<RunList>> {
    return this.get(RUNS_URL, signal, isRunList);
  }

  report(id: string, signal: AbortSignal): Promise<Answer<ReportAnswer>> {
    return this.get(about("report", id), signal, isAbout<ReportAnswer>);
  }

  /** The last answer about this recording, if it is still kept. */
  remembered(id: string): ReportAnswer | undefined {
    const value = this.kept.get(about("report", id))?.value;
    return isAbout<ReportAnswer>(value) ? value : undefined;
  }

  ranks(id: string, signal: AbortSignal): Promise<Answer<RanksAnswer>> {
    return this.get(about("ranks", id), signal, isRanks);
  }

  /** The readings within (since, until] ns since 1970, at most so many of each series. */
  telemetry(id: string, points: number, { since, until }: Between, signal: AbortSignal): Promise<Answer<TelemetryAnswer>> {
    const from = since === undefined ? "" : `&since=${Math.round(since)}`;
    const to = until === undefined ? "" : `&until=${Math.round(until)}`;
    return this.once(`${about("telemetry", id)}&points=${points}${from}${to}`, signal, isTelemetry);
  }

  tables(id: string, signal: AbortSignal): Promise<Answer<TablesAnswer>> {
    return this.once(about("tables", id), signal, isAbout<TablesAnswer>);
  }

  /** Recording A against recording B. */
  compare(a: string, b: string, signal: AbortSignal): Promise<Answer<ComparisonAnswer>> {
    return this.once(`compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, signal, isComparison);
  }

  /** Several recordings in a row, in this order. */
  series(ids: readonly string[], signal: AbortSignal): Promise<Answer<SeriesAnswer>> {
    return this.once(`series?${ids.map((id) => `id=${encodeURIComponent(id)}`).join("&")}`, signal, isSeries);
  }

  /** The recording under other conditions, as whatif/asked.ts spells them. */
  whatIf(id: string, supposed: string, signal: AbortSignal): Promise<Answer<WhatIfAnswer>> {
    return this.once(`${about("what_if", id)}&${supposed}`, signal, isAbout<WhatIfAnswer>);
  }

  /** The devices that a recording can be supposed to have run on. */
  devices(signal: AbortSignal): Promise<Answer<DeviceList>> {
    return this.get("devices", signal, isDevices);
  }

  /** The stretch [begin, end) ns, for so many pixels. */
  timeline(id: string, begin: number, end: number, pixels: number, signal: AbortSignal): Promise<Answer<TimelineAnswer>> {
    return this.once(`${about("timeline", id)}${within(begin, end)}&pixels=${pixels}`, signal, isAbout<TimelineAnswer>);
  }

  /** The whole recording, without knowing yet when it was. */
  overview(id: string, pixels: number, signal: AbortSignal): Promise<Answer<TimelineAnswer>> {
    return this.once(`${about("timeline", id)}&pixels=${pixels}`, signal, isAbout<TimelineAnswer>);
  }

  /** The range [begin, end) ns as a trace of its own: the file's bytes. */
  slice(id: string, begin: number, end: number, signal: AbortSignal): Promise<Answer<ArrayBuffer>> {
    return this.ask(`${about("slice", id)}${within(begin, end)}`, signal, {}, (response) => taken(response, () => response.arrayBuffer()));
  }

  private async get<T>(url: string, signal: AbortSignal, isT: Form<T>): Promise<Answer<T>> {
    const kept = this.kept.get(url);
    return this.ask(url, signal, kept ? { "If-None-Match": kept.etag } : {}, async (response) => {
      const value: unknown = response.status === 304 ? kept?.value : await taken(response, () => response.json());
      if (!isT(value)) throw new Error(UNKNOWN_FORM);
      if (value !== kept?.value) this.keep(url, response.headers.get("ETag"), value);
      return value;
    });
  }

  private once<T>(url: string, signal: AbortSignal, isT: Form<T>): Promise<Answer<T>> {
    return this.ask(url, signal, {}, async (response) => {
      const value: unknown = await taken(response, () => response.json());
      if (!isT(value)) throw new Error(UNKNOWN_FORM);
      return value;
    });
  }

  private async ask<T>(
    url: string,
    signal: AbortSignal,
    headers: Record<string, string>,
    read: (response: Response) => Promise<T>,
  ): Promise<Answer<T>> {
    const deadline = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const response = await this.fetcher(url, { headers, signal: AbortSignal.any([signal, deadline]) }).catch(unreached);
      if (response.status === 202) return { kind: "pending", value: await pendingIn(response) };
      return { kind: "ok", value: await read(response) };
    } catch (error) {
      if (signal.aborted) return { kind: "aborted" };
      if (deadline.aborted) return { kind: "failed", message: `No answer within ${TIMEOUT_MS / 1000} seconds.` };
      return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
    }
  }

  private keep(url: string, etag: string | null, value: unknown): void {
    this.kept.delete(url);
    if (etag === null) return;
    this.kept.set(url, { etag, value });
    const [oldest] = this.kept.keys();
    if (this.kept.size > REMEMBERED && oldest !== undefined) this.kept.delete(oldest);
  }
}

const UNKNOWN_FORM = "The server's answer has a form that this tab does not know.";

/** What fetch() says of a server that is not there differs between browsers, and helps nobody. */
function unreached(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  throw new Error("TensorBoard could not be reached: it was stopped, or the connection to it is gone.");
}

/** The body of a good answer; the server's sentence, thrown, for any other. */
async function taken<T>(response: Response, body: () => Promise<T>): Promise<T> {
  if (response.ok) return body();
  const plain = response.headers.get("Content-Type")?.startsWith("text/plain") ?? false;
  throw new Error((plain && (await response.text()).trim()) || `The server answered ${response.status}.`);
}

/** The body of a 202. Throws if it is not a Pending. */
async function pendingIn(response: Response): Promise<Pending> {
  const value: unknown = await response.json();
  if (!isPending(value)) throw new Error(UNKNOWN_FORM);
  return value;
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

function isRunList(value: unknown): value is RunList {
  return isObject(value) && Array.isArray(value["runs"]) && Array.isArray(value["problems"]);
}

function isPending(value: unknown): value is Pending {
  return isObject(value) && typeof value["state"] === "string" && typeof value["progress"] === "number";
}

function isAbout<T>(value: unknown): value is T {
  return isObject(value) && typeof value["id"] === "string" && typeof value["state"] === "string";
}

function isRanks(value: unknown): value is RanksAnswer {
  return isObject(value) && typeof value["id"] === "string" && Array.isArray(value["ranks"]);
}

function isComparison(value: unknown): value is ComparisonAnswer {
  return isObject(value) && typeof value["a"] === "string" && typeof value["b"] === "string" && typeof value["state"] === "string";
}

function isSeries(value: unknown): value is SeriesAnswer {
  return isObject(value) && Array.isArray(value["ids"]) && typeof value["state"] === "string";
}

function isDevices(value: unknown): value is DeviceList {
  return isObject(value) && Array.isArray(value["names"]);
}

function isTelemetry(value: unknown): value is TelemetryAnswer {
  return isObject(value) && typeof value["id"] === "string" && Array.isArray(value["series"]) && Array.isArray(value["bands"]);
}
