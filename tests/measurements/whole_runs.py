"""Judges whole runs with planted causes: `python whole_runs.py [--seconds S] [--only KIND ...] [--write]`.

Small trainings on this machine's CPU (whole_run_training.py) are recorded by the monitor, one after the other: some
with a cause that shows over the run, and steady ones with noise, alone and beside another program. The page goes to
stdout, and with --write to tests/measurements/WHOLE_RUNS.md; progress goes to stderr.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from pages import progress, publish  # noqa: E402

PLANTED = {
    "drift_list": {"growing_steps"},
    "drift_python": {"growing_steps"},
    "drift_file": {"growing_steps"},
    "drift_wait": {"growing_steps"},
    "drift_loader": {"growing_steps"},
    "drift_forward": {"growing_steps"},
    "drift_hooks": {"growing_steps"},
    "drift_metric": {"growing_steps"},
    "jump": {"growing_steps"},
    "sorted": {"growing_within_epochs"},
    "recompilation": {"recompilation"},
    "compilation": {"compilation"},
    "short_epochs": {"restarted_workers"},
    "logging": {"logging"},
    "checkpoint": {"checkpointing"},
    "evaluation": {"evaluation"},
    "leak": {"rising_host_memory"},
    "collection": {"garbage_collection"},
    "python": {"host_python"},
    "phases": {"rollout"},
}
"""The causes that name what was planted, by kind; of phases, the function that the report tells apart."""
LONGER = {"leak": 2.0}
"""Kinds that need more time than the others, as a factor: a leak is named from 24 readings of the memory on."""
STEADY = (
    *("steady_plain", "steady_loader", "steady_workers", "steady_logging", "steady_checkpoint"),
    *("steady_evaluation", "steady_python", "steady_spikes", "steady_shapes", "steady_again"),
)
BUSY = "while True: sum(range(1000))"


@dataclass(frozen=True)
class Judged:
    """What the product says of a run: its action with the gain, and its causes, that of the headline first."""

    action: str
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One training, alone or beside another program."""

    kind: str
    beside: bool
    found: Judged

    @property
    def right(self) -> bool:
        """Returns True if the planted cause is named, or nothing that grows where nothing was planted."""
        if self.kind in PLANTED:
            return bool(PLANTED[self.kind] & set(self.found.causes))
        return not {"growing_steps", "growing_within_epochs"} & set(self.found.causes)

    @property
    def first(self) -> bool:
        """Returns True if the planted cause is the first one."""
        return bool(PLANTED.get(self.kind, set()) & set(self.found.causes[:1]))


def record(kind: str, seconds: float, logdir: str, beside: bool) -> None:
    """Trains under the monitor."""
    command = [sys.executable, "-m", "tb_bottleneck", "run", "--logdir", logdir, str(HERE / "whole_run_training.py")]
    other = subprocess.Popen([sys.executable, "-c", BUSY]) if beside else None
    try:
        subprocess.run([*command, kind, str(seconds)], check=True, capture_output=True, timeout=600)
    finally:
        if other is not None:
            other.kill()
            other.wait()


def judged(logdir: str) -> Judged:
    """Returns what the command line says of the training in this logdir."""
    done = subprocess.run(
        [sys.executable, "-m", "tb_bottleneck", "diagnose", "--json", "--no-cache", logdir],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    reports = json.loads(done.stdout)["reports"]
    led = next((report for report in reports if _is_trusted(report)), reports[0])
    alert = led["verdict"].get("memory_alert", {})
    first = [alert["cause"]] if alert.get("leads") else []
    memory = [finding["cause"] for report in reports for finding in report.get("memory", {}).get("findings", [])]
    parts = [part.get("name", "") for report in reports for part in report.get("step_parts", [])]
    causes = [*first, *(finding["cause"] for finding in led.get("findings", [])), *memory, *parts]
    return Judged(led["verdict"].get("action", ""), tuple(dict.fromkeys(causes)))


def _is_trusted(report: dict[str, Any]) -> bool:
    source = "telemetry" if report.get("evidence_source") == "telemetry" else "trace"
    return any(other.get("trusted") and other.get("witness") == source for other in report.get("others", []))


def main() -> None:
    """Records and judges the runs, and prints the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="time of each training (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=[], help="kinds to run (default: all)")
    parser.add_argument("--repeat", type=int, default=1, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--keep", help="folder for the recordings, which are used if they exist (default: none)")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/WHOLE_RUNS.md")
    options = parser.parse_args()
    chosen = [kind for kind in (*PLANTED, *STEADY) if not options.only or kind in options.only]
    planned = [
        (kind, beside, time)
        for kind in chosen
        for beside in ((False,) if kind in PLANTED else (False, True))
        for time in range(options.repeat)
    ]
    runs = []
    with tempfile.TemporaryDirectory() as temporary:
        for number, (kind, beside, time) in enumerate(planned):
            progress("training", number + 1, len(planned))
            logdir = Path(options.keep or temporary) / f"{kind}{'_beside' * beside}_{time}"
            if not logdir.is_dir():
                record(kind, options.seconds * LONGER.get(kind, 1.0), str(logdir), beside)
            runs.append(Run(kind, beside, judged(str(logdir))))
    publish(_page(runs), HERE / "WHOLE_RUNS.md", options.write)


def _page(runs: list[Run]) -> list[str]:
    planted, steady = ([run for run in runs if (run.kind in PLANTED) == side] for side in (True, False))
    return [
        "# Whole runs with planted causes",
        "",
        f"Real trainings on a CPU, recorded by the monitor. The planted cause is named in "
        f"{sum(run.right for run in planted)} of {len(planted)} runs, and it is the first one in "
        f"{sum(run.first for run in planted)}. Steps are not said to become longer in "
        f"{sum(run.right for run in steady)} of {len(steady)} steady runs. "
        f"{_repeated(runs)}Made by `python tests/measurements/whole_runs.py --write`.",
        "",
        "| training | beside it | right | action | first causes |",
        "|---|---|---|---|---|",
        *(
            f"| {run.kind} | {'another program' if run.beside else ''} | {'yes' if run.right else 'no'} "
            f"| {run.found.action} | {', '.join(run.found.causes[:3])} |"
            for run in runs
        ),
    ]


def _repeated(runs: list[Run]) -> str:
    """Returns a sentence about how often repeated trainings have the same first cause; empty if none is repeated."""
    firsts: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for run in runs:
        firsts[run.kind, run.beside].append(run.found.causes[0] if run.found.causes else "")
    if all(len(causes) == 1 for causes in firsts.values()):
        return ""
    most = sum(Counter(causes).most_common(1)[0][1] for causes in firsts.values())
    return f"The first cause of repeated trainings is the same in {most} of {len(runs)}. "


if __name__ == "__main__":
    main()
