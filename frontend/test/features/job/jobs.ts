// Small jobs for the tests.
import type { Culprit, Job, JobAnswer, RankTable } from "../../../src/shared/report";

export const culprit: Culprit = {
  cause: "rank_input",
  title: "A rank waits for its data",
  ranks: [2],
  cost_share: 0.2,
  host: 0,
  evidence: [{ label: "Longer than its peers, per step", value: 1e7, unit: "ns", text: "", compared_with: "" }],
  speedup: { expected: 1.25, low: 1.2, high: 1.3, basis: "replay", assumes: "peers", because: "" },
  fix: { summary: "Its loader is slow.", code: "DataLoader()", confirm: "", action: "Speed up the data loader of rank 2" },
};

export function job(fields: Partial<Job> = {}): Job {
  const verdict = { regime: "input", share: 0.2, severity: "critical", confidence: "high", headline: "The others wait for rank 2.", title: "", action: "Speed up the data loader of rank 2: about 1.25× faster" };
  return { run: "job", ranks: [0, 1, 2, 3], world_size: 4, missing_ranks: [], verdict, account: [], stragglers: [], groups: [], culprits: [culprit], step_ns: 5e7, hosts: [], ...fields };
}

export function ranks(count: number, fields: Partial<RankTable> = {}): RankTable {
  const each = <T>(value: (rank: number) => T) => Array.from({ length: count }, (_, rank) => value(rank));
  return {
    rank: each((rank) => rank),
    id: each((rank) => `id${rank}`),
    source: each((rank) => `rank${rank}.pt.trace.json`),
    host: [],
    stage: [],
    step_ns: each(() => 5e7),
    regime: each(() => "compute"),
    severity: each(() => "none"),
    account: [
      { regime: "compute", share: each(() => 0.7) },
      { regime: "communication", share: each((rank) => (rank === 2 ? 0.1 : 0.3)) },
    ],
    excess_share: [],
    wait_share: [],
    wire_share: [],
    ...fields,
  };
}

export function answer(fields: Partial<JobAnswer> = {}): JobAnswer {
  return { id: "id0", state: "done", progress: 1, basis: "saved", job: job(), ranks: ranks(4), because: "", command: "tb-bottleneck diagnose --write /runs/job", saved_ns: 1.79e18, other_version: false, ...fields };
}
