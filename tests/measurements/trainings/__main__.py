"""`python -m tests.measurements.trainings --out DIR [--only CASE …]` times and records the trainings; `--judge RESULTS`
judges them.

Both halves of a case run in processes of their own. They are timed in turn, without a profiler, then recorded. What DIR
contains is kept, so the command can be resumed. It needs torch, pandas, transformers, accelerate and lightning.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.measurements.trainings.cases import CASES, Case
from tests.measurements.trainings.judge import judge

ROOT = Path(__file__).parents[3]
REPEATS = 7
HALVES = ("slow", "fixed")


class Half:
    """The processes of one half, one per rank."""

    def __init__(self, case: Case, half: str, folder: Path) -> None:
        self.log = (folder / f"{half}.log").open("w")
        self.ranks = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.measurements.trainings.half", case.name, half, str(rank), str(folder)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            )
            for rank in range(case.ranks)
        ]  # fmt: skip

    def ask(self, command: str) -> dict[str, Any]:
        """Sends a command to all ranks. Returns the answer of the first."""
        for rank in self.ranks:
            print(command, file=rank.stdin, flush=True)
        answers = [(rank.stdout.readline() if rank.stdout else "") for rank in self.ranks]
        if not all(answers):
            raise RuntimeError(f"a training ended early; see {self.log.name}")
        answer: dict[str, Any] = json.loads(answers[0])
        return answer

    def end(self) -> None:
        for rank in self.ranks:
            if rank.stdin:
                rank.stdin.close()
            try:
                rank.wait(20)
            except subprocess.TimeoutExpired:
                rank.kill()
        self.log.close()


def run(case: Case, folder: Path, record: bool) -> None:
    """Times both halves of a case in turn, records them, and writes `times.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.rendezvous"):
        left.unlink()
    names = HALVES if case.words else HALVES[:1]
    halves = {half: Half(case, half, folder) for half in names}
    try:
        timed = {half: [] for half in halves}
        for _ in range(REPEATS if record else 1):
            for half, processes in halves.items():
                timed[half].append(processes.ask("time"))
        recorded = {half: processes.ask("trace") for half, processes in halves.items()} if record else {}
    finally:
        for processes in halves.values():
            processes.end()
    times = {half: {"timed": timed[half], **recorded.get(half, {})} for half in halves}
    if record:
        (folder / "times.json").write_text(json.dumps(times), encoding="utf-8")
    else:
        print(json.dumps(times))


def main() -> int:
    """Runs the command. Returns 1 if a training failed."""
    parser = argparse.ArgumentParser(description="Times and records trainings with a planted problem each.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help="TRAINING/PROBLEM; default: all")
    parser.add_argument("--no-recording", action="store_true", help="only time each half once and print the times")
    parser.add_argument(
        "--judge", type=Path, metavar="RESULTS", help="diagnose the recordings in DIR into this folder instead"
    )
    options = parser.parse_args()
    if options.judge:
        judge(options.out, options.judge)
        return 0
    failed = 0
    for name in options.only or CASES:
        folder = options.out / name
        if (folder / "times.json").exists():
            continue
        print(name, file=sys.stderr, flush=True)
        try:
            run(CASES[name], folder, not options.no_recording)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
