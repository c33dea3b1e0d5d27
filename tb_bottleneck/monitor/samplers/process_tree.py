"""The descendants of this process: on Linux directly from /proc, on other systems with psutil.

psutil finds children by reading every process of the machine, which took 15 µs per process (82 processes, a virtual
machine with two cores). Linux has a list of each thread's children.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MAX_DESCENDANTS = 4096  # more are ignored, so that a run-away program does not slow the monitor


@dataclass(frozen=True, slots=True)
class Descendant:
    """A living descendant. `began` distinguishes it from a later process with the same id."""

    pid: int
    parent: int
    began: float
    name: str
    cpu_s: float
    """CPU time since its start, without its own children."""


class ProcessTree(Protocol):
    """The processes below one process."""

    def descendants(self) -> list[Descendant]:
        """Returns all descendants at any depth, without those that end during the call."""
        ...

    def command(self, pid: int) -> tuple[str, ...]:
        """Returns a process's command line, or () if it is not available."""
        ...


class LinuxProcessTree:
    """Reads `root`/proc."""

    def __init__(self, root: Path = Path("/"), pid: int | None = None) -> None:
        self._proc = root / "proc"
        self._pid = os.getpid() if pid is None else pid

    def is_available(self) -> bool:
        """Returns True if the kernel lists children: a build option (CONFIG_PROC_CHILDREN) that most kernels have."""
        return (self._proc / f"{self._pid}/task/{self._pid}/children").exists()

    def descendants(self) -> list[Descendant]:
        """See the protocol."""
        descendants: list[Descendant] = []
        to_visit = [self._pid]
        while to_visit and len(descendants) < MAX_DESCENDANTS:
            parent = to_visit.pop()
            for pid in self._children(parent):
                descendant = self._read(pid, parent)
                if descendant is not None:
                    descendants.append(descendant)
                    to_visit.append(pid)
        return descendants

    def command(self, pid: int) -> tuple[str, ...]:
        """Reads /proc/PID/cmdline."""
        try:
            raw = (self._proc / f"{pid}/cmdline").read_bytes()
        except OSError:
            return ()
        text = raw.decode("utf-8", "replace").rstrip("\0")
        return tuple(text.split("\0")) if text else ()  # it is just executing another program, or has ended

    def _children(self, pid: int) -> Iterator[int]:
        try:
            threads = os.listdir(self._proc / f"{pid}/task")
        except OSError:
            return
        for thread in threads:
            try:
                words = (self._proc / f"{pid}/task/{thread}/children").read_text().split()
            except OSError:
                continue  # the thread has ended meanwhile
            yield from map(int, words)

    def _read(self, pid: int, parent: int) -> Descendant | None:
        try:
            text = (self._proc / f"{pid}/stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        # The name is in parentheses and may contain any character, including parentheses (proc(5)).
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) < 20:
            return None
        ticks = int(words[11]) + int(words[12])
        return Descendant(pid, parent, float(words[19]) / _TICKS_PER_S, name, ticks / _TICKS_PER_S)


class PsutilProcessTree:
    """Uses psutil."""

    def descendants(self) -> list[Descendant]:
        """See the protocol."""
        descendants = []
        for child in psutil.Process().children(recursive=True)[:MAX_DESCENDANTS]:
            try:
                times = child.cpu_times()
                descendants.append(
                    Descendant(child.pid, child.ppid(), child.create_time(), child.name(), times.user + times.system)
                )
            except psutil.Error:
                continue  # it has ended meanwhile, or may not be read
        return descendants

    def command(self, pid: int) -> tuple[str, ...]:
        """See the protocol."""
        try:
            return tuple(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ()


def process_tree() -> ProcessTree:
    """Returns this system's implementation for this process."""
    linux = LinuxProcessTree()
    return linux if linux.is_available() else PsutilProcessTree()
