"""Runs the blocks of a round of a trial: as processes that are started together and train in turns, or one after the
other. A block is one run of one variant of the program."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tb_bottleneck.base.units import one_line
from tb_bottleneck.trial.block_process import START_S, Ended, Process, ProgramFailed, end_all
from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.turns import END


@dataclass
class Blocks:
    """Runs blocks of one program. A block is one run of the program, unchanged or with one change, that is measured.

    `program` has the words of its command after the interpreter `python`: a script or -m and a module, then arguments.
    `measure_s` is the time to measure per block, and `folder` is for files of the blocks.

    If `in_turns` is True, all blocks that `run` gets in one call are started together. If a program fails then, it runs
    once more, alone. If it does not fail alone, it cannot run at the same time as others, for example because of memory
    or a port. In this case, `told` is called with the reason, `in_turns` becomes False, and later blocks run one after
    the other.
    """

    program: tuple[str, ...]
    python: str = sys.executable
    measure_s: float = 2.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tb_bottleneck_try_")))
    in_turns: bool = True
    told: Callable[[str], None] = lambda _text: None

    def run(self, changes: Sequence[Change], is_over: Ended = lambda: False) -> list[BlockResult | BlockFailed]:
        """Runs one block of the program for each of `changes`, and returns the results in this order.

        Blocks are ended as failed when `is_over` returns True.
        """
        if not self.in_turns or len(changes) == 1:
            return [result for change in changes for result in self._run([change], is_over)]
        results = self._run(changes, is_over)
        for number, failure in enumerate(results):
            if not isinstance(failure, ProgramFailed) or is_over():
                continue
            (results[number],) = self._run([changes[number]], is_over)
            if self.in_turns and isinstance(results[number], BlockResult):
                self.in_turns = False
                self.told(f"One after the other from here on, since a program failed beside another one: {failure}")
        return results

    def _run(self, changes: Sequence[Change], is_over: Ended) -> list[BlockResult | BlockFailed]:
        processes: list[Process] = []
        try:
            for change in changes:
                processes.append(Process(tempfile.mkdtemp(prefix="block", dir=self.folder)))
                self._start(processes[-1], change)
            _take_turns(processes, is_over)
            return [process.result() for process in processes]
        finally:
            end_all(processes)

    def _start(self, process: "Process", change: Change) -> None:
        try:
            program = _in_copy(self.program, change.folder)
        except BlockFailed as failure:
            process.failure = failure
            return
        spec = {
            "settings": change.settings,
            "logdir": str(process.logdir),
            "result": str(process.logdir / "result.json"),
            "program": [*program, *change.arguments],
            "copy_of": os.getcwd() if change.folder else "",
            "parent": os.getpid(),
            "measure_s": self.measure_s,
            "prefetched": 2 * next((int(value) for name, value in change.settings if name == "workers"), 0),
        }
        # Our package must be found also where the working directory does not have it.
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        process.start(
            self.python,
            spec,
            change.folder,
            {**os.environ, "PYTHONPATH": path, "TB_BOTTLENECK_QUIET": "1", **change.variables},
        )


def _take_turns(processes: Sequence[Process], is_over: Ended) -> None:
    """Lets the processes train in turns, in the order A B B A A B B A, until all turns are over or `is_over` returns
    True.

    The processes import torch at the same time. Then the programs start and warm up one after the other. Otherwise, two
    programs that prepare the same data, or choose the fastest kernels, would disturb each other. All processes end
    after the last turn.
    """
    for process in processes:
        process.report(is_over)
    possible = []
    for process in processes:
        process.grant(1)
        possible.append(process.report(is_over, START_S))
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
    """Returns `program` with a relative path of the script, so that the script in a copy of the work tree runs.

    `folder` is the folder in the copy that corresponds to the working directory; if it is empty, returns `program`.
    With an absolute path, the script in the work tree itself would run. Raises BlockFailed if the script is not in the
    copy.
    """
    if not folder or program[0] == "-m":
        return program
    script = os.path.relpath(program[0])
    if not os.path.isfile(os.path.join(folder, script)):
        raise BlockFailed(f"{one_line(program[0])} is not in the git work tree, of which --patch and --rev run a copy")
    return (script, *program[1:])
