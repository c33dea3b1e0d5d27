"""Runs blocks of a trial in processes of their own, and reads what their monitors recorded."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tb_bottleneck.base.text import one_line
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, read_all
from tb_bottleneck.trial.changes import Change

START_S = 120.0
"""A program without a step for so long is ended: it may wait for input, or train in other processes."""
END_S = 10.0
MAX_OUTPUT = 2_000
PARTS = ("loader_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging", "garbage_collection")


class BlockFailed(Exception):
    """A block gave no steps; str() says why, for users."""


@dataclass(frozen=True)
class BlockResult:
    """What one block measured. Times are means per step in ns; `parts` has the parts of the step, and "other"."""

    step_ns: float
    steps: int
    samples: float  # per step; 0 if it is not known
    parts: dict[str, float]
    losses: tuple[float, ...]
    peak_bytes: int
    run: Path
    """The logdir of the block."""
    ended: bool = False
    """True if the program itself ended before enough steps were measured."""
    uncopied: tuple[str, ...] = ()
    """Modules that a program in a copy of the work tree imported from the work tree itself, as paths in it."""


@dataclass(frozen=True)
class Blocks:
    """Runs blocks of one program. `program` begins with a script or with -m; `python` is the interpreter."""

    program: tuple[str, ...]
    python: str = sys.executable
    measure_s: float = 2.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tb_bottleneck_try_")))

    def run(self, change: Change, is_over: Callable[[], bool] = lambda: False) -> BlockResult:
        """Runs one block of the program with this change. Raises BlockFailed."""
        logdir = Path(tempfile.mkdtemp(prefix="block", dir=self.folder))
        result = logdir / "result.json"
        workers = next((int(value) for name, value in change.settings if name == "workers"), 0)
        spec = {
            "settings": change.settings,
            "logdir": str(logdir),
            "result": str(result),
            "program": [*_in_copy(self.program, change.folder), *change.arguments],
            "copy_of": os.getcwd() if change.folder else "",
            "measure_s": self.measure_s,
            "prefetched": 2 * workers,
        }
        (logdir / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        output = self._wait_for(change, logdir, result, is_over)
        if not result.exists():
            raise BlockFailed(f"the program ended without a result:\n{_tail(output)}")
        return _read(json.loads(result.read_text(encoding="utf-8")), logdir, output)

    def _wait_for(self, change: Change, logdir: Path, result: Path, is_over: Callable[[], bool]) -> Path:
        """Runs the process until it has a result or ends. Returns the file with its output."""
        output = logdir / "output.txt"
        # Our package must be found also where the working directory does not have it.
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, **change.variables}
        command = [self.python, "-m", "tb_bottleneck.trial.program", str(logdir / "spec.json")]
        with (
            output.open("wb") as file,
            subprocess.Popen(
                command,
                cwd=change.folder or None,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                self._watch(process, logdir, result, is_over)
            finally:
                _end(process)
        return output

    def _watch(
        self, process: "subprocess.Popen[bytes]", logdir: Path, result: Path, is_over: Callable[[], bool]
    ) -> None:
        began = time.monotonic()
        while process.poll() is None and not result.exists():
            if is_over():
                raise BlockFailed("there was no time left for it")
            if time.monotonic() - began > START_S and not _has_steps(logdir):
                raise BlockFailed(
                    f"no optimizer step was seen in {START_S:.0f} s. Either the program needs longer to start, or it "
                    "has no optimizer of torch, or it trains in processes that it starts itself."
                )
            time.sleep(0.05)


def _in_copy(program: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Returns the program with its script in the copy of the work tree whose working directory is `folder`.

    A script that is named by an absolute path would be the unchanged one. Raises BlockFailed if the copy lacks it.
    """
    if not folder or program[0] == "-m":
        return program
    script = os.path.relpath(program[0])
    if not os.path.isfile(os.path.join(folder, script)):
        raise BlockFailed(f"{one_line(program[0])} is not in the git work tree, of which --patch and --rev run a copy")
    return (script, *program[1:])


def _has_steps(logdir: Path) -> bool:
    for path in logdir.glob("tb_bottleneck/*/heartbeat.json"):
        try:
            return int(json.loads(path.read_text(encoding="utf-8"))["step"]) >= 0
        except (OSError, ValueError, KeyError):
            continue
    return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process and all processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            if process.poll() is None and number == signal.SIGTERM:
                process.terminate()
                process.wait(END_S)
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue
        return


def _read(result: dict[str, Any], logdir: Path, output: Path) -> BlockResult:
    if result["state"] == "failed":
        raise BlockFailed(f"{one_line(result['because'])}\n{_tail(output)}")
    if result["unused"] and result["steps"]:
        raise BlockFailed(f"The change had no effect: {'; '.join(result['unused'])}.")
    files = sorted(logdir.glob("tb_bottleneck/*/events.out.tfevents.*"))
    reader = TelemetryReader(str(files[0])) if files else None
    if reader is None or read_all(reader) is not None or not len(reader.telemetry.steps):
        raise BlockFailed(f"the program made no step that the monitor saw:\n{_tail(output)}")
    rows = reader.telemetry.steps
    first = result["first"] if result["first"] >= 0 else len(rows) // 3
    chosen = rows.column("number").mean >= first
    counts = np.where(chosen, rows.count, 0).astype(np.float64)
    if not counts.sum():
        raise BlockFailed(f"the program made only {result['steps']} steps, too few to measure:\n{_tail(output)}")

    def mean(name: str) -> float:
        return float(np.nansum(rows.column(name).mean * counts) / counts.sum())

    samples = rows.column("samples").mean
    known = np.where(np.isfinite(samples), counts, 0.0)
    wall = mean("wall")
    parts = {name: mean(name) for name in PARTS}
    parts["other"] = max(wall - sum(parts.values()), 0.0)
    return BlockResult(
        step_ns=wall,
        steps=int(counts.sum()),
        samples=float(np.nansum(samples * known) / known.sum()) if known.sum() else 0.0,
        parts=parts,
        losses=tuple(result["losses"]),
        peak_bytes=result["peak_bytes"],
        run=logdir,
        ended=result["state"] == "ended",
        uncopied=tuple(result["uncopied"]),
    )


def _tail(output: Path) -> str:
    try:
        text = output.read_text(encoding="utf-8", errors="replace")[-MAX_OUTPUT:]
    except OSError:
        return ""
    return "\n".join(f"  {one_line(line)}" for line in text.splitlines()[-12:])


def program_of(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the interpreter and the program of a command such as `python train.py --epochs 3`.

    Raises:
        ValueError: the command does not start a Python program.
    """
    words = list(command)
    if not words:
        raise ValueError("there is no command: put it after --, for example: -- python train.py --epochs 3")
    name = os.path.basename(words[0])
    if name.startswith("python"):
        python = sys.executable if name in ("python", "python3") else words.pop(0)
        words = words if python != sys.executable else words[1:]
        while words and words[0] == "-u":
            words = words[1:]
    elif words[0].endswith(".py"):
        python = sys.executable
    else:
        raise ValueError(
            f"{one_line(words[0])} is no Python program. Give the command of one process: -- python train.py …; what "
            "torchrun or accelerate launch would start."
        )
    if not words or (words[0].startswith("-") and words[0] != "-m"):
        raise ValueError("only `python SCRIPT …` and `python -m MODULE …` can be tried")
    return python, tuple(words)
