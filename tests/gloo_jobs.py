"""Judges real jobs with planted causes: `python tests/gloo_jobs.py [--ranks N] [--repeats N] [--write]`.

torchrun starts small trainings with Gloo on this machine (gloo_training.py), each with a cause and with its fix. The
planted one is judged, and the predicted gain is compared with the ratio of the recorded and of the unprofiled steps of
both. The page goes to stdout, and with --write to tests/GLOO.md; progress goes to stderr.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import gloo_training  # noqa: E402
from helpers.pages import progress, publish  # noqa: E402

from tb_bottleneck.jobs.context import JobContext  # noqa: E402
from tb_bottleneck.jobs.culprits import culprits_of  # noqa: E402
from tb_bottleneck.jobs.execution.rank_analysis import Task, analyse  # noqa: E402
from tb_bottleneck.jobs.pairing.job_table import job_table  # noqa: E402
from tb_bottleneck.jobs.summary.encoding import decode  # noqa: E402

CAUSES = {
    "slow_rank": [gloo_training.SLOW_RANK],
    "rank_input": [gloo_training.LOADER_RANK],
    "rank_interruption": [gloo_training.SAVING_RANK],
    "data_imbalance": [],
}
"""Planted causes with their ranks; empty: any."""

SECONDS = 300


@dataclass(frozen=True)
class Run:
    """A real job: its mean recorded step, its mean step without a profiler in seconds, and the ranks' recordings."""

    recorded: float
    unprofiled: float
    context: JobContext


def run(cause: str, variant: str, ranks: int) -> Run:
    """Trains, and reads the traces."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += [str(HERE / "gloo_training.py"), cause, variant, folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, timeout=SECONDS, capture_output=True)
        files = sorted(Path(folder).glob("rank*.json.gz"))
        summaries = [decode(analyse(Task(str(file), ".", cache=False)).summary) for file in files]
        unprofiled = json.loads((Path(folder) / "unprofiled.json").read_text())
    recorded = float(np.mean([summary.edges[-1] / summary.steps for summary in summaries])) / 1e9
    return Run(recorded, unprofiled, JobContext(job_table(summaries)))


def page(ranks: int, repeats: int) -> Iterator[str]:
    """Yields the page, line by line."""
    yield "# Real jobs with Gloo"
    yield ""
    yield "Written by `python tests/gloo_jobs.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield f"Trainings of {ranks} ranks on one machine of {os.cpu_count()} cores. Compute and delays are sleeps, but the"
    yield "rest of the ranks shares the cores: repeats of one training differ by some percent, on a busy machine more."
    yield "Measured is the ratio of the mean steps with the cause and with its fix, as recorded and without a profiler."
    yield ""
    yield "| planted | found | predicted | measured, recorded | measured, unprofiled | replay error |"
    yield "|---|---|---:|---:|---:|---:|"
    healthy = 0
    for number, (cause, planted_on) in enumerate(list(CAUSES.items()) * repeats):
        progress("job", number + 1, len(CAUSES) * repeats)
        planted, fixed = run(cause, "planted", ranks), run(cause, "fixed", ranks)
        healthy += not culprits_of(fixed.context).culprits
        culprits = culprits_of(planted.context).culprits
        found = ", ".join(f"{culprit.candidate.cause} {culprit.candidate.ranks.tolist()}" for culprit in culprits)
        gain = next((c for c in culprits if c.candidate.cause == cause), None)
        predicted = f"{gain.expected:.2f} ({gain.low:.2f} to {gain.high:.2f})" if gain is not None else "-"
        ratios = f"{planted.recorded / fixed.recorded:.2f} | {planted.unprofiled / fixed.unprofiled:.2f}"
        error = f"{planted.context.error:.1%}"
        yield f"| {cause} {planted_on or ''} | {found or 'nothing'} | {predicted} | {ratios} | {error} |"
    yield ""
    yield f"Fixed jobs without a culprit: {healthy} of {len(CAUSES) * repeats}."


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2, help="jobs per cause")
    parser.add_argument("--write", action="store_true", help="write tests/GLOO.md")
    options = parser.parse_args()
    publish(page(options.ranks, options.repeats), HERE / "GLOO.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
