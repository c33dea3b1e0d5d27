"""Runs blocks of a trial: processes that are started together and train in turns, or one after the other."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tb_bottleneck.base.text import one_line
from tb_bottleneck.trial.block_result import BlockFailed, BlockResult, read_result, tail
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.turns import END

START_S = 120.0
"""A program without a step for so long is ended: it may wait for input, or train in other processes."""
END_S = 10.0
LOOK_S = 0.05
Ended = Callable[[], bool]


@dataclass
class Blocks:
    """Runs blocks of one program. `program` begins with a script or with -m; `python` is the interpreter.

    With `in_turns`, the blocks of a round are started together. Programs that cannot run at the same time, because of
    the memory or a port, run one after the other: after the first round in which one fails, `told` is called with
    the reason, and `in_turns` becomes False.
    """

    program: tuple[str, ...]
    python: str = sys.executable
    measure_s: float = 2.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tb_bottleneck_try_")))
    in_turns: bool = True
    told: Callable[[str], None] = lambda _text: None

    def run(self, changes: Sequence[Change], is_over: Ended = lambda: False) -> list[BlockResult | BlockFailed]:
        """Runs one block of the program with each of the changes, which take turns in this order."""
        if self.in_turns and len(changes) > 1:
            results = self._run(changes, is_over)
            failed = [each for each in results if isinstance(each, ProgramFailed)]
            if not failed or is_over():
                return list(results)
            self.in_turns = False
            self.told(f"One after the other from here on, since a program failed beside another one: {failed[0]}")
        return [result for change in changes for result in self._run([change], is_over)]

    def _run(self, changes: Sequence[Change], is_over: Ended) -> list[BlockResult | BlockFailed]:
        processes: list[Process] = []
        try:
            for change in changes:
                processes.append(self._started(change))
            _take_turns(processes, is_over)
            return [process.result() for process in processes]
        except BlockFailed as failure:
            return [failure] * len(changes)
        finally:
            for process in processes:
                process.end()

    def _started(self, change: Change) -> "Process":
        logdir = Path(tempfile.mkdtemp(prefix="block", dir=self.folder))
        granted, grant = os.pipe()
        reports, report = os.pipe()
        spec = {
            "settings": change.settings,
            "logdir": str(logdir),
            "result": str(logdir / "result.json"),
            "program": [*_in_copy(self.program, change.folder), *change.arguments],
            "copy_of": os.getcwd() if change.folder else "",
            "measure_s": self.measure_s,
            "prefetched": 2 * next((int(value) for name, value in change.settings if name == "workers"), 0),
            "pipes": (granted, report),
        }
        (logdir / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        # Our package must be found also where the working directory does not have it.
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        with (logdir / "output.txt").open("wb") as file:
            process = subprocess.Popen(
                [self.python, "-m", "tb_bottleneck.trial.program", str(logdir / "spec.json")],
                cwd=change.folder or None,
                env={**os.environ, "PYTHONPATH": path, **change.variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(granted, report),
            )
        os.close(granted)
        os.close(report)
        return Process(process, logdir, grant, reports)


class ProgramFailed(BlockFailed):
    """The process of a block failed, or ended without a result."""


@dataclass
class Process:
    """The process of one block, and the pipes to grant a turn to it and to read its reports."""

    process: "subprocess.Popen[bytes]"
    logdir: Path
    grant_pipe: int
    report_pipe: int
    is_training: bool = True
    """False once it reports no more, because it ended or failed."""

    def report(self, is_over: Ended, starts: bool = False) -> int:
        """Waits for a report; 0 also if the process ends. `starts` is True until the warm-up is over.

        Raises BlockFailed if the time is over or no step is seen.
        """
        began = time.monotonic()
        while self.is_training:
            readable, _, _ = select.select([self.report_pipe], [], [], LOOK_S)
            report = os.read(self.report_pipe, 1) if readable else b""
            if report:
                return report[0]
            if readable or self.process.poll() is not None:  # nothing to read from a closed pipe
                self.is_training = False
            elif is_over():
                raise BlockFailed("there was no time left for it")
            elif starts and time.monotonic() - began > START_S and not _has_steps(self.logdir):
                raise BlockFailed(
                    f"no optimizer step was seen in {START_S:.0f} s. Either the program needs longer to start, or it "
                    "has no optimizer of torch, or it trains in processes that it starts itself."
                )
        return 0

    def grant(self, turns: int) -> None:
        """Grants a turn of so many, or END."""
        try:
            os.write(self.grant_pipe, bytes([turns]))
        except BrokenPipeError:
            self.is_training = False

    def result(self) -> BlockResult | BlockFailed:
        """Returns what the process measured, after it ended."""
        path, output = self.logdir / "result.json", self.logdir / "output.txt"
        if not path.exists():
            return ProgramFailed(f"the program ended without a result:\n{tail(output)}")
        try:
            return read_result(path, self.logdir, output)
        except BlockFailed as failure:
            is_failed = json.loads(path.read_text(encoding="utf-8"))["state"] == "failed"
            return ProgramFailed(str(failure)) if is_failed else failure

    def end(self) -> None:
        """Ends the process and all processes that it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                if self.process.poll() is None and number == signal.SIGTERM:
                    self.process.terminate()
                    self.process.wait(END_S)
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
            except subprocess.TimeoutExpired:
                continue
            break
        for pipe in (self.grant_pipe, self.report_pipe):
            os.close(pipe)
        self.process.wait()


def _take_turns(processes: Sequence[Process], is_over: Ended) -> None:
    """Lets the processes train in turns: A B B A A B B A. Raises BlockFailed.

    They import torch at the same time. Then their programs start one after the other, because two that prepare the same
    data, or choose the fastest kernels, would disturb each other. All end together, after the last turn.
    """
    for process in processes:
        process.report(is_over)
    possible = []
    for process in processes:
        process.grant(1)
        possible.append(process.report(is_over, starts=True))
    turns = min((each for each in possible if each), default=0)
    for turn in range(turns):
        for process in processes if turn % 2 == 0 else reversed(processes):
            if process.is_training:
                process.grant(turns)
                process.report(is_over)
    for process in processes:
        process.grant(END)
    for process in processes:
        process.report(is_over)


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
