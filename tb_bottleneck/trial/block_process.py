"""Starts and controls the process of a block (one run of one variant of the program) from the parent process.

The process trains only while the parent grants it a turn, and ends together with the processes of the other blocks.
"""

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tb_bottleneck.trial.block_result import BlockFailed, BlockResult, read_result, tail

START_S = 120.0
"""A program that makes no step for this many seconds is ended: it may wait for input, or train in other processes."""
END_S = 10.0
LOOK_S = 0.05
Ended = Callable[[], bool]


class ProgramFailed(BlockFailed):
    """The failure of a block whose process failed, ended without a result, or made no step."""


class Process:
    """The process of one block, with a pipe on which turns are granted, and a pipe from which reports are read.

    `failure` is the reason if the block failed. `logdir` is the folder for the files of the block.
    """

    def __init__(self, logdir: str) -> None:
        self.logdir = Path(logdir)
        self.failure: BlockFailed | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._grants = self._reports = -1

    def start(self, python: str, spec: dict[str, object], folder: str, environment: dict[str, str]) -> None:
        """Starts the process. `python` is the interpreter, and `spec` the specification of the block (program.py).

        `folder` is the working directory of the process, or "" for that of this process. `environment` has all
        environment variables.
        """
        granted, self._grants = os.pipe()
        self._reports, report = os.pipe()
        path, output = self.logdir / "spec.json", self.logdir / "output.txt"
        try:
            path.write_text(json.dumps({**spec, "pipes": (granted, report)}), encoding="utf-8")
            with output.open("wb") as file:
                self.process = subprocess.Popen(
                    [python, "-m", "tb_bottleneck.trial.program", str(path)],
                    cwd=folder or None,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    # A process group of its own in our session: if we are killed, the system continues a stopped group.
                    preexec_fn=os.setpgrp,
                    pass_fds=(granted, report),
                )
        finally:
            os.close(granted)
            os.close(report)

    @property
    def is_running(self) -> bool:
        """True if the process was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def is_training(self) -> bool:
        """True if the process was started, has not ended, and the block has not failed."""
        return self.failure is None and self.is_running

    def report(self, is_over: Ended, limit_s: float = math.inf) -> int:
        """Waits for a report of the process (see turns.py), stops the process with SIGSTOP, and returns the report.

        Returns 0 if the process ends or fails, if it makes no step within `limit_s` seconds, or if `is_over` returns
        True. In the last two cases, the block has failed.
        """
        began = time.monotonic()
        while self.failure is None:
            is_training = self.is_training  # before it is read: what a process reported before its end counts
            report = os.read(self._reports, 1) if _is_readable(self._reports, LOOK_S if is_training else 0.0) else b""
            if report:
                self._signal(signal.SIGSTOP)
                return report[0]
            if not is_training:
                break
            if is_over():
                self.failure = BlockFailed("there was no time left for it")
            elif time.monotonic() - began > limit_s and not _has_steps(self.logdir):
                self.failure = ProgramFailed(
                    f"no optimizer step was seen in {limit_s:.0f} s. Either the program needs longer to start, or it "
                    "has no optimizer of torch, or it trains in processes that it starts itself."
                )
        return 0

    def grant(self, turns: int) -> None:
        """Continues the process and grants it one turn, which lasts 1 / `turns` of the time to measure.

        If `turns` is END, the process ends instead.
        """
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):  # it has just ended
            os.write(self._grants, bytes([turns]))

    def result(self) -> BlockResult | BlockFailed:
        """Returns what the process measured, or the failure of the block. Call it after the process has ended."""
        path, output = self.logdir / "result.json", self.logdir / "output.txt"
        if self.failure is not None:
            return self.failure
        if not path.exists():
            return ProgramFailed(f"the program ended without a result:\n{tail(output)}")
        try:
            return read_result(path, self.logdir, output)
        except BlockFailed as failure:
            is_failed = json.loads(path.read_text(encoding="utf-8"))["state"] == "failed"
            return ProgramFailed(str(failure)) if is_failed else failure

    def _signal(self, number: int) -> None:
        """Sends a signal to the process and to all processes that it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def end(self, number: int) -> None:
        """Sends the signal `number`. SIGTERM is sent only to the process itself, other signals, such as SIGKILL, to the
        whole process group."""
        if self.process is None:
            return
        if number == signal.SIGTERM:
            self.process.terminate()
            self._signal(signal.SIGCONT)
        else:
            self._signal(number)

    def close(self) -> None:
        """Waits for the end of the process, and closes the pipes."""
        if self.process is not None:
            self.process.wait()
        for pipe in (self._grants, self._reports):
            if pipe >= 0:
                os.close(pipe)


def end_all(processes: Sequence[Process]) -> None:
    """Ends `processes` and all processes that these have started: first with SIGTERM, after END_S with SIGKILL."""
    try:
        for process in processes:
            process.end(signal.SIGTERM)
        end = time.monotonic() + END_S
        while any(process.is_running for process in processes) and time.monotonic() < end:
            time.sleep(LOOK_S)
    finally:
        for process in processes:
            process.end(signal.SIGKILL)
        for process in processes:
            process.close()


def _is_readable(pipe: int, seconds: float) -> bool:
    return bool(select.select([pipe], [], [], seconds)[0])


def _has_steps(logdir: Path) -> bool:
    """Returns True if the heartbeat of the process shows a step."""
    for path in logdir.glob("tb_bottleneck/*/heartbeat.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            return int(json.loads(path.read_text(encoding="utf-8"))["step"]) >= 0
    return False
