// The plugin's two JSON routes (tb_bottleneck/plugin/http_api.md). Failures come back as values, never as exceptions.
import type { ReportAnswer, RunList } from "./report";

export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string } // no answer, or not one that we can use
  | { readonly kind: "aborted" }; // we no longer want it

/** Answers that are kept to be confirmed by a 304, or shown again at once: the list and the latest reports. */
const REMEMBERED = 24;
const TIMEOUT_MS = 20_000;

// Relative on purpose: the page's <base> ends in `data/plugin/tb_bottleneck/`, whatever --path_prefix says.
const RUNS_URL = "runs";
const reportUrl = (id: string) => `report?id=${encodeURIComponent(id)}`;

interface Kept {
  readonly etag: string;
  readonly value: unknown;
}

/** Asks the server; an unchanged answer is the same object as before, so nothing is drawn again. */
export class Client {
  private readonly kept = new Map<string, Kept>();

  constructor(private readonly fetcher: typeof fetch) {}

  runs(signal: AbortSignal): Promise<Answer<RunList>> {
    return this.get(RUNS_URL, signal, isRunList);
  }

  report(id: string, signal: AbortSignal): Promise<Answer<ReportAnswer>> {
    return this.get(reportUrl(id), signal, isReportAnswer);
  }

  /** The last answer about this recording, if it is still kept. */
  remembered(id: string): ReportAnswer | undefined {
    const value = this.kept.get(reportUrl(id))?.value;
    return isReportAnswer(value) ? value : undefined;
  }

  private async get<T>(url: string, signal: AbortSignal, isT: (value: unknown) => value is T): Promise<Answer<T>> {
    const kept = this.kept.get(url);
    const deadline = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const headers: Record<string, string> = kept ? { "If-None-Match": kept.etag } : {};
      const response = await this.fetcher(url, { headers, signal: AbortSignal.any([signal, deadline]) });
      const value: unknown = response.status === 304 ? kept?.value : await body(response);
      if (!isT(value)) return { kind: "failed", message: "The server's answer has a form that this tab does not know." };
      if (value !== kept?.value) this.keep(url, response.headers.get("ETag"), value);
      return { kind: "ok", value };
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

/** The JSON of a good answer; the server's sentence, thrown, for any other. */
async function body(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  const plain = response.headers.get("Content-Type")?.startsWith("text/plain") ?? false;
  throw new Error((plain && (await response.text()).trim()) || `The server answered ${response.status}.`);
}

type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

function isRunList(value: unknown): value is RunList {
  return isObject(value) && Array.isArray(value["runs"]) && Array.isArray(value["problems"]);
}

function isReportAnswer(value: unknown): value is ReportAnswer {
  return isObject(value) && typeof value["id"] === "string" && typeof value["state"] === "string";
}
