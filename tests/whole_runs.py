"""Judges whole runs with planted causes: `python tests/whole_runs.py [--seconds S] [--only KIND ...] [--write]`.

Small trainings on this machine's CPU (whole_run_training.py) are recorded by the monitor, one after the other: some
with a cause that shows over the run, and steady ones with noise, half of them beside another program. The page goes to
stdout, and with --write to tests/WHOLE_RUNS.md; progress goes to stderr.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from helpers.pages import progress, publish  # noqa: E402

PLANTED = {
    "drift_list": {"growing_steps"},
    "drift_python": {"growing_steps"},
    "drift_file": {"growing_steps"},
    "drift_wait": {"growing_steps"},
    "drift_loader": {"growing_steps"},
    "drift_forward": {"growing_steps"},
    "drift_hooks": {"growing_steps"},
    "jump": {"growing_steps"},
    "recompilation": {"recompilation"},
    "short_epochs": {"restarted_workers"},
    "logging": {"logging"},
    "checkpoint": {"checkpointing"},
    "evaluation": {"evaluation"},
    "leak": {"rising_host_memory"},
    "python": {"host_python"},
}
"""The causes that name what was planted, by kind."""
STEADY = (
    *("steady_plain", "steady_loader", "steady_workers", "steady_logging", "steady_checkpoint"),
    *("steady_evaluation", "steady_python", "steady_spikes", "steady_shapes", "steady_again"),
)
BUSY = "while True: sum(range(1000))"


@dataclass(frozen=True)
class Judged:
    """What the product says of a run: its action, its first causes, and all causes of drift."""

    action: str
    causes: tuple[str, ...]
    gain: float


def record(kind: str, seconds: float, logdir: str) -> None:
    """Trains under the monitor."""
    command = [sys.executable, "-m", "tb_bottleneck", "run", "--logdir", logdir]
    subprocess.run(
        [*command, str(HERE / "whole_run_training.py"), kind, str(seconds)],
        check=True,
        capture_output=True,
        timeout=600,
    )


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
    memory = [finding["cause"] for finding in led.get("memory", {}).get("findings", [])]
    alert = led.get("verdict", {}).get("memory_alert", {})
    findings = led.get("findings", [])
    causes = [finding["cause"] for finding in findings]
    first = [alert["cause"]] if alert.get("leads") else []
    gain = findings[0]["speedup"]["expected"] if findings else 1.0
    return Judged(led.get("verdict", {}).get("action", ""), (*first, *causes, *memory), gain)


def _is_trusted(report: dict[str, object]) -> bool:
    others = report.get("others", [])
    source = "telemetry" if report.get("evidence_source") == "telemetry" else "trace"
    return any(other.get("trusted") and other.get("witness") == source for other in others)  # type: ignore[attr-defined]


def main() -> None:
    """Records and judges the runs, and prints the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="time of each training (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=[], help="kinds to run (default: all)")
    parser.add_argument("--keep", help="folder for the recordings (default: a temporary one)")
    parser.add_argument("--write", action="store_true", help="write tests/WHOLE_RUNS.md")
    options = parser.parse_args()
    chosen = [kind for kind in (*PLANTED, *STEADY) if not options.only or kind in options.only]
    rows, hits, false = [], 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        for number, kind in enumerate(chosen):
            progress("training", number + 1, len(chosen))
            logdir = str(Path(options.keep or temporary) / kind)
            beside = kind in STEADY[::2]
            other = subprocess.Popen([sys.executable, "-c", BUSY]) if beside else None
            try:
                record(kind, options.seconds, logdir)
            finally:
                if other is not None:
                    other.kill()
                    other.wait()
            found = judged(logdir)
            if kind in PLANTED:
                right = bool(set(found.causes[:1]) & PLANTED[kind])
                hits += right
            else:
                right = "growing_steps" not in found.causes
                false += not right
            rows.append((kind, "another program" if beside else "", found, right))
    planted, steady = (len([kind for kind in chosen if kind in of]) for of in (PLANTED, STEADY))
    publish(_page(rows, hits, planted, steady - false, steady), HERE / "WHOLE_RUNS.md", options.write)


def _page(rows: list[tuple[str, str, Judged, bool]], hits: int, planted: int, quiet: int, steady: int) -> list[str]:
    return [
        "# Whole runs with planted causes",
        "",
        f"Real trainings on a CPU, recorded by the monitor. The planted cause comes first in {hits} of {planted} runs; "
        f"{quiet} of {steady} steady runs are not said to become slower. Made by `python tests/whole_runs.py --write`.",
        "",
        "| run | beside it | right | first action | first causes |",
        "|---|---|---|---|---|",
        *(
            f"| {kind} | {beside} | {'yes' if right else 'no'} | {found.action} | {', '.join(found.causes[:3])} |"
            for kind, beside, found, right in rows
        ),
    ]


if __name__ == "__main__":
    main()
