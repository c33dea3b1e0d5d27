// The answers of the route `live`: jobs that train now (tb_bottleneck/plugin/http_api.md).

export interface LiveRank {
  readonly rank: number;
  readonly state: string;
  readonly directory: string;
  readonly step: number;
  readonly age_s: number;
  /** The rest is left out of a brief answer. */
  readonly quiet_s?: number;
  readonly phase?: string;
  readonly place?: string;
  readonly restarts?: number;
  readonly recent_ns?: Readonly<Record<string, number>>;
  /** Begin (s since 1970), steps, then means: step, wait for data, own host time (ns), clock (Hz). */
  readonly history?: readonly (readonly (number | null)[])[];
  readonly stacks?: readonly { readonly thread: string; readonly frames: readonly string[] }[];
}

export interface LiveVerdict {
  readonly cause: string;
  readonly severity: "critical" | "warning" | "info" | "none";
  readonly headline: string;
  readonly fix: string;
  readonly ranks: readonly number[];
  readonly place: string;
  readonly stalled: boolean;
  readonly since_s: number | null;
  readonly waiting: readonly number[];
}

export interface LiveJob {
  readonly run: string;
  readonly world_size: number;
  readonly step: number;
  readonly verdict: LiveVerdict;
  readonly missing_ranks: readonly number[];
  readonly ranks: readonly LiveRank[];
}

export interface LiveAnswer {
  readonly jobs: readonly LiveJob[];
}

/** The job that a run directory, or a recording in it, belongs to. */
export function liveJobOf(jobs: readonly LiveJob[] | undefined, run: string): LiveJob | undefined {
  return jobs?.find(({ ranks }) => ranks.some(({ directory }) => directory === run));
}

/** True as long as a process of the job may still write. */
export const isOpen = ({ verdict }: LiveJob): boolean => verdict.cause !== "ended" && verdict.cause !== "failed" && verdict.cause !== "killed";
