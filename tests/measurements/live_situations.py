"""Measures what live monitoring says of planted situations: `python live_situations.py [--minutes N] [--write]`.

Each situation is a small job of real processes with Gloo on this machine. The time is that from the fault to the right
verdict. Then a healthy job trains for N minutes, with evaluations and a slow first step, and each verdict with an alarm
is counted. The table goes to stdout, and with --write to tests/measurements/LIVE.md.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from pages import progress, publish  # noqa: E402

from tb_bottleneck.live.state import LiveJobs, LiveState  # noqa: E402

PROGRAM = HERE.parent / "monitor" / "live_program.py"
FAULT_STEP = 100
LIMIT_S = 120.0
START_S = 400.0
"""Sixty-four processes import torch on few cores."""
TARGET_S = 15.0


@dataclass(frozen=True)
class Situation:
    """A planted fault of rank 1: the program's name of it, accepted causes, and what is done to the processes."""

    title: str
    fault: str
    causes: tuple[str, ...]
    ranks: int = 2
    signal: int = 0
    named: tuple[int, ...] = (1,)
    restarts: int = 0
    """How often torchrun starts the job again; without it, the processes have no launcher."""
    beside: bool = False
    """True to train a healthy job in the same logdir."""


SITUATIONS = (
    Situation("one rank gets its data late", "slow_data", ("rank_input",)),
    Situation("one rank needs 20 ms more of Python", "slow_host", ("rank_host",), 4),
    Situation("one rank saves every 50 steps", "interruption", ("rank_interruption",)),
    Situation("one rank hangs before the forward pass", "hang", ("hang",), 4),
    Situation("one rank sleeps before a collective", "before_collective", ("hang",)),
    Situation("one rank calls another collective", "mismatch", ("collective_mismatch",), named=()),
    Situation("an exception on one rank", "exception", ("failed",)),
    Situation("SIGSTOP of one rank", "none", ("stopped",), signal=signal.SIGSTOP),
    Situation("SIGKILL of one rank", "none", ("killed",), signal=signal.SIGKILL),
    Situation("one rank without a monitor", "without_monitor", ("alike",), 3, named=()),
    Situation("torchrun restarts a job that failed", "exception_once", ("alike",), named=(), restarts=1),
    Situation("two jobs in one logdir, a rank of one hangs", "hang", ("hang",), beside=True),
    Situation("sixteen ranks, one hangs", "hang", ("hang",), 16),
    Situation("sixty-four ranks, one hangs", "hang", ("hang",), 64),
)


class Job:
    """Real processes of one job."""

    def __init__(self, situation: Situation, logdir: Path, steps: int = 0) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        logdir.mkdir(parents=True, exist_ok=True)
        common = {**os.environ, "OMP_NUM_THREADS": "1"}
        if steps:
            common["LIVE_STEPS"] = str(steps)
        self.situation = situation
        program = [str(PROGRAM), situation.fault, str(logdir)]
        if situation.restarts:
            torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={situation.ranks}"]
            torchrun += [
                f"--max-restarts={situation.restarts}",
                "--rdzv-backend=c10d",
                f"--rdzv-endpoint=localhost:{port}",
            ]
            self.processes = [started([*torchrun, *program], common)]
        else:
            common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(situation.ranks)}
            self.processes = [
                started([sys.executable, *program], common | {"RANK": str(rank)}) for rank in range(situation.ranks)
            ]
        self.live = LiveJobs(str(logdir))

    def state(self) -> LiveState | None:
        """Returns the state of the job that ranks first; None before its first heartbeat."""
        return next(iter(self.live.read()), None)

    def wait(self, until: Callable[[LiveState], bool], seconds: float) -> LiveState | None:
        """Returns the last state, when it is as wanted or the time is over."""
        end, state = time.monotonic() + seconds, None
        while time.monotonic() < end:
            state = self.state()
            if state is not None and until(state):
                break
            time.sleep(0.5)
        return state

    def end(self) -> None:
        for process in self.processes:
            process.terminate() if self.situation.restarts else process.kill()  # torchrun ends its own
            process.wait()


def started(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measured(situation: Situation, folder: Path) -> tuple[str, str, str]:
    """Returns what was said, of which ranks, and after how many seconds."""
    job = Job(situation, folder)
    others = [Job(Situation("healthy", "healthy", ()), folder, steps=10_000_000)] if situation.beside else []
    try:
        job.wait(lambda state: state.job.step >= FAULT_STEP - 1, START_S)
        began = time.monotonic()
        if situation.signal:
            job.processes[1].send_signal(situation.signal)

        def right(state: LiveState) -> bool:
            verdict = state.verdict
            named = not situation.named or verdict.ranks == situation.named
            again = max(rank.restarts for rank in state.job.ranks) == situation.restarts
            size = len(state.job.ranks) == situation.ranks or situation.fault == "without_monitor"
            return verdict.cause in situation.causes and named and again and size

        state = job.wait(right, LIMIT_S)
        after = time.monotonic() - began
        if state is None:
            return "no heartbeat", "", ""
        said = state.verdict.cause if right(state) else f"**{state.verdict.cause}**"
        return said, ", ".join(map(str, state.verdict.ranks)), f"{after:.0f} s" if right(state) else "never"
    finally:
        for each in (job, *others):
            each.end()


def alarms(minutes: float, folder: Path) -> Iterator[str]:
    """Yields each headline with an alarm of a healthy job, once."""
    job, seen = Job(Situation("healthy", "healthy", ()), folder, steps=10_000_000), set()
    until = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < until:
            state = job.state()
            alarm = state is not None and state.verdict.severity in ("critical", "warning")
            if state is not None and alarm and state.verdict.cause not in seen:
                seen.add(state.verdict.cause)
                yield state.verdict.headline
            time.sleep(1)
    finally:
        job.end()


def page(minutes: float) -> Iterator[str]:
    """Yields the page, line by line."""
    yield "# Live jobs, planted situations"
    yield ""
    yield "Written by `python tests/measurements/live_situations.py --write`. Real processes with Gloo on one machine"
    yield "with few cores. The time is from the fault (or from the step before it) to the verdict. Heartbeats come"
    yield "every 5 s. Bold is a wrong verdict. Of the restart, it is the time until the restarted job is shown as one"
    yield "that was restarted and is well, with all that torch needs to start again."
    yield ""
    yield "| situation | ranks | verdict | of rank | after |"
    yield "|---|---:|---|---|---:|"
    with tempfile.TemporaryDirectory() as folder:
        for number, situation in enumerate(SITUATIONS):
            progress("situation", number, len(SITUATIONS))
            said, ranks, after = measured(situation, Path(folder) / str(number))
            yield f"| {situation.title} | {situation.ranks} | {said} | {ranks} | {after} |"
        found = list(alarms(minutes, Path(folder) / "healthy"))
    yield ""
    yield f"False alarms of a healthy job in {minutes:g} minutes, with evaluations on one rank and a slow first step:"
    yield f"{len(found)}."
    for headline in found:
        yield f"- {headline}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, metavar="N", help="length of the healthy job (30)")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/LIVE.md")
    options = parser.parse_args()
    publish(page(options.minutes), HERE / "LIVE.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
