"""Judges real jobs with planted causes: `python gloo_jobs.py [--ranks N ...] [--repeats N] [--write]`.

torchrun starts small trainings with Gloo on this machine (gloo_training.py with DDP, gloo_parallel.py with a pipeline
and with FSDP2), each with a cause and with its fix in turn. The planted one is judged, and the predicted gain is
compared with the ratio of the recorded and of the unprofiled steps of both. The page goes to stdout, and with --write
to tests/measurements/GLOO.md; progress goes to stderr.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import gloo_parallel  # noqa: E402
import gloo_training  # noqa: E402
from pages import progress, publish  # noqa: E402

from tb_bottleneck.jobs.context import JobContext  # noqa: E402
from tb_bottleneck.jobs.culprits import culprits_of  # noqa: E402
from tb_bottleneck.jobs.execution.rank_analysis import Task, analyse  # noqa: E402
from tb_bottleneck.jobs.report.health import is_trusted  # noqa: E402
from tb_bottleneck.jobs.summary.encoding import decode  # noqa: E402

CAUSES = {
    "slow_rank": [gloo_training.SLOW_RANK],
    "rank_input": [gloo_training.LOADER_RANK],
    "rank_interruption": [gloo_training.SAVING_RANK],
    "data_imbalance": [],
}
"""Planted causes of the trainings with DDP, with their ranks; empty: any."""

PARALLEL_RANKS = 4
PARALLEL = {
    ("pipeline", "stage_imbalance"): [PARALLEL_RANKS - 1],
    ("pipeline", "slow_rank"): [gloo_parallel.SLOW_RANK],
    ("sharded", "slow_rank"): [gloo_parallel.SLOW_RANK],
}
"""Planted causes of the other trainings, by kind."""

SECONDS = 900


@dataclass(frozen=True)
class Run:
    """A real job: its mean recorded step, its mean step without a profiler in seconds, and the ranks' recordings."""

    recorded: float
    unprofiled: float
    context: JobContext


def run(kind: str, cause: str, variant: str, ranks: int) -> Run:
    """Trains, and reads the traces."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        script = ["gloo_training.py"] if kind == "data" else ["gloo_parallel.py", kind]
        command += [str(HERE / script[0]), *script[1:], cause, variant, folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, timeout=SECONDS, capture_output=True)
        files = sorted(Path(folder).glob("*.json.gz"))
        summaries = [decode(analyse(Task(str(file), ".", cache=False)).summary) for file in files]
        unprofiled = json.loads((Path(folder) / "unprofiled.json").read_text())
    recorded = float(np.mean([summary.edges[-1] / summary.steps for summary in summaries])) / 1e9
    return Run(recorded, unprofiled, JobContext.of(summaries))


def page(sizes: list[int], repeats: int) -> Iterator[str]:
    """Yields the page, line by line."""
    yield "# Real jobs with Gloo"
    yield ""
    yield "Written by `python tests/measurements/gloo_jobs.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield f"Trainings of {' and '.join(map(str, sizes))} ranks with DDP (data), and of {PARALLEL_RANKS} with 1F1B of"
    yield f"torch.distributed.pipelining and with FSDP2 (sharded), on one machine of {os.cpu_count()} cores. Compute"
    yield "and delays are sleeps, but everything else shares the cores. Measured is the ratio of the mean steps"
    yield "with the cause and with its fix, as recorded and without a profiler. Load is the number of processes that"
    yield "want a core, averaged over a minute, before the training with the cause and before that with the fix."
    yield ""
    heads = (
        "training",
        "ranks",
        "planted",
        "found",
        "predicted",
        "recorded",
        "unprofiled",
        "inside",
        "load",
        "replay error",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---|---:|---|---|---:|---:|---:|---|---:|---:|"
    jobs = [("data", ranks, cause, CAUSES[cause]) for ranks in sizes for _ in range(repeats) for cause in CAUSES]
    parallel = [(kind, PARALLEL_RANKS, cause, at) for (kind, cause), at in PARALLEL.items()]
    jobs += [job for _ in range(repeats) for job in parallel]
    healthy, inside, whole, steps = 0, 0, len(jobs), defaultdict(list)
    for number, (kind, ranks, cause, at) in enumerate(jobs):
        progress("job", number + 1, whole)
        loads = [os.getloadavg()[0]]
        planted = run(kind, cause, "planted", ranks)
        loads.append(os.getloadavg()[0])
        fixed = run(kind, cause, "fixed", ranks)
        healthy += not is_trusted(fixed.context) or not culprits_of(fixed.context).culprits
        steps[kind, ranks, cause].append(fixed.unprofiled)
        # A job whose replay is wrong is judged by the accounts of its ranks, without a gain.
        culprits = culprits_of(planted.context).culprits if is_trusted(planted.context) else ()
        found = ", ".join(f"{culprit.candidate.cause} {culprit.candidate.ranks.tolist()}" for culprit in culprits)
        gain = next((c.gain for c in culprits if c.candidate.cause == cause), None)
        recorded, unprofiled = planted.recorded / fixed.recorded, planted.unprofiled / fixed.unprofiled
        hits = [gain is not None and gain.low <= ratio <= gain.high for ratio in (recorded, unprofiled)]
        inside += all(hits)
        verdict = "both" if all(hits) else "recorded" if hits[0] else "unprofiled" if hits[1] else "no"
        predicted = f"{gain.expected:.2f} ({gain.low:.2f} to {gain.high:.2f})" if gain is not None else "-"
        cells = [kind, str(ranks), f"{cause} {at or ''}".strip(), found or "nothing", predicted]
        cells += [f"{recorded:.2f}", f"{unprofiled:.2f}", verdict, " and ".join(f"{load:.1f}" for load in loads)]
        yield f"| {' | '.join([*cells, f'{planted.context.error:.1%}'])} |"
    yield ""
    yield f"Fixed jobs without a culprit: {healthy} of {whole}. Both measured gains inside: {inside} of {whole}."
    spreads = [max(times) / min(times) - 1 for times in steps.values() if len(times) > 1]
    if spreads:
        yield f"Repeats of the same fixed training differ by {median(spreads):.0%} (median) to {max(spreads):.0%},"
        yield "which no prediction can know."


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--repeats", type=int, default=2, help="jobs per cause")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/GLOO.md")
    options = parser.parse_args()
    publish(page(options.ranks, options.repeats), HERE / "GLOO.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
