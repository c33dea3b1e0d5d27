"""The processes under this one: on Linux straight from /proc, elsewhere through psutil.

psutil finds children by reading every process of the machine, which took 15 µs for each of them (82 processes, a
virtual machine with two cores); Linux keeps a list of each thread's children.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MAX_DESCENDANTS = 4096  # processes looked at: a run-away program must not make us slow


@dataclass(frozen=True, slots=True)
class Descendant:
    """A living process under this one. `began` tells it from a later one with the same id."""

    pid: int
    parent: int
    began: float
    name: str
    cpu_s: float
    """Processor time it took since it began, without its own children."""


class ProcessTree(Protocol):
    """Where relatives come from."""

    def relatives(self) -> list[Descendant]:
        """Every process under this one, at any depth."""
        ...

    def command(self, pid: int) -> tuple[str, ...]:
        """A process's command line, empty where it cannot be had."""
        ...


class LinuxProcessTree:
    """Reads `root`/proc."""

    def __init__(self, root: Path = Path("/"), pid: int | None = None) -> None:
        self._proc = root / "proc"
        self._pid = os.getpid() if pid is None else pid

    def can_tell(self) -> bool:
        """Whether the kernel lists children: most do, it is a build option (CONFIG_PROC_CHILDREN)."""
        return (self._proc / f"{self._pid}/task/{self._pid}/children").exists()

    def relatives(self) -> list[Descendant]:
        """Processes that vanish while they are looked at are left out."""
        found: list[Descendant] = []
        waiting = [self._pid]
        while waiting and len(found) < MAX_DESCENDANTS:
            parent = waiting.pop()
            for pid in self._children(parent):
                relative = self._look(pid, parent)
                if relative is not None:
                    found.append(relative)
                    waiting.append(pid)
        return found

    def command(self, pid: int) -> tuple[str, ...]:
        """From /proc/PID/cmdline."""
        try:
            raw = (self._proc / f"{pid}/cmdline").read_bytes()
        except OSError:
            return ()
        text = raw.decode("utf-8", "replace").rstrip("\0")
        return tuple(text.split("\0")) if text else ()  # it is becoming another program just now, or has ended

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

    def _look(self, pid: int, parent: int) -> Descendant | None:
        try:
            text = (self._proc / f"{pid}/stat").read_bytes().decode("utf-8", "replace")
        except OSError:
            return None
        # The name is in brackets and may hold any character, brackets too (proc(5)).
        name, _, rest = text.partition("(")[2].rpartition(")")
        words = rest.split()
        if len(words) < 20:
            return None
        ticks = int(words[11]) + int(words[12])
        return Descendant(pid, parent, float(words[19]) / _TICKS_PER_S, name, ticks / _TICKS_PER_S)


class PsutilProcessTree:
    """Asks psutil."""

    def relatives(self) -> list[Descendant]:
        """Processes that vanish while they are looked at are left out."""
        found = []
        for child in psutil.Process().children(recursive=True)[:MAX_DESCENDANTS]:
            try:
                times = child.cpu_times()
                found.append(
                    Descendant(child.pid, child.ppid(), child.create_time(), child.name(), times.user + times.system)
                )
            except psutil.Error:
                continue  # it has ended meanwhile, or the system does not let us look
        return found

    def command(self, pid: int) -> tuple[str, ...]:
        """As psutil tells it."""
        try:
            return tuple(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ()


def process_tree() -> ProcessTree:
    """The one for this system."""
    linux = LinuxProcessTree()
    return linux if linux.can_tell() else PsutilProcessTree()
