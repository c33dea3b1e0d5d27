"""The training process, its files in /proc, and its descendants."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from tb_bottleneck.monitor.samplers.io import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

NO_PSS = "only Linux 4.14 and newer have it, in /proc/PID/smaps_rollup"
_READ = re.compile(r"^rchar: (\d+)$", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


class ProcessFiles:
    """What Linux reports about the process with this id: its waits for a core, the bytes that it read, and its memory.

    `root` contains `proc/`. The file schedstat has the time in which the main thread ran, and the time in which the
    main thread waited for a core, in ns (Linux documentation, scheduler/sched-stats). A kernel built without this
    information prints zeros. `rchar` in the file io counts all bytes that read calls returned, including those from the
    page cache and from pipes. `Pss` in the file smaps_rollup is the proportional set size (PSS): the memory of the
    process, in which the size of each shared page is divided by the number of processes that share the page (Linux
    documentation, filesystems/proc).
    """

    def __init__(self, root: Path, pid: int) -> None:
        self._folder = root / f"proc/{pid}"

    def core_wait_ns(self) -> float | None:
        """Returns the time in ns that the main thread has waited for a core since its start; None if not counted."""
        try:
            ran, waited = (self._folder / "schedstat").read_text().split()[:2]
            return float(waited) if float(ran) > 0 else None
        except (OSError, ValueError):
            return None

    def read_bytes(self) -> float | None:
        """Returns the bytes that the process has read since its start; None if not counted or not permitted."""
        try:
            match = _READ.search((self._folder / "io").read_text())
        except OSError:
            return None
        return float(match[1]) if match else None

    def has_pss(self) -> bool:
        """Returns True if the kernel reports the proportional set size of the process."""
        return (self._folder / "smaps_rollup").exists()

    def pss_bytes(self) -> float | None:
        """Returns the proportional set size in bytes; None if unknown or not permitted. Takes milliseconds."""
        try:
            match = _PSS.search((self._folder / "smaps_rollup").read_text())
        except OSError:
            return None
        return float(match[1]) * 1024 if match else None


_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MAX_DESCENDANTS = 4096  # more are ignored, so that a run-away program does not slow the monitor


@dataclass(frozen=True, slots=True)
class Descendant:
    """A running descendant of this process, at any depth. `began` is its start time in s, which distinguishes it from a
    later process with the same id."""

    pid: int
    parent: int
    began: float
    name: str
    cpu_s: float
    """CPU time in s since the start of the process, without the time of its children."""


class ProcessTree(Protocol):
    """Lists the processes below one process."""

    def descendants(self) -> list[Descendant]:
        """Returns all descendants at any depth. Processes that end during the call are left out."""
        ...

    def command(self, pid: int) -> tuple[str, ...]:
        """Returns the words of the command line of the process `pid`, or () if the command line is not available."""
        ...


class LinuxProcessTree:
    """Finds the descendants of the process `pid` (by default this process). /proc lists the children of each thread.
    `root` contains `proc/`."""

    def __init__(self, root: Path = Path("/"), pid: int | None = None) -> None:
        self._proc = root / "proc"
        self._pid = os.getpid() if pid is None else pid

    def is_available(self) -> bool:
        """Returns True if the kernel lists children. This depends on a build option, CONFIG_PROC_CHILDREN, that most
        kernels have."""
        return (self._proc / f"{self._pid}/task/{self._pid}/children").exists()

    def descendants(self) -> list[Descendant]:
        """Returns up to MAX_DESCENDANTS living descendants of the process at any depth."""
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
        """Returns the words of /proc/PID/cmdline, or () if the file is empty or cannot be read."""
        try:
            raw = (self._proc / f"{pid}/cmdline").read_bytes()
        except OSError:
            return ()
        text = raw.decode("utf-8", "replace").rstrip("\0")
        return tuple(text.split("\0")) if text else ()  # empty if the process is starting another program, or has ended

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
    """Finds the descendants of this process with psutil, for systems where the kernel does not list children.

    psutil finds children by reading every process of the machine, which took 15 µs per process (82 processes, a virtual
    machine with two cores)."""

    def descendants(self) -> list[Descendant]:
        """Returns up to MAX_DESCENDANTS living descendants of this process at any depth."""
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
        """Returns the command line of the process `pid`, or () if psutil cannot read it."""
        try:
            return tuple(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ()


def process_tree() -> ProcessTree:
    """Returns a LinuxProcessTree if the kernel lists children, otherwise a PsutilProcessTree."""
    linux = LinuxProcessTree()
    return linux if linux.is_available() else PsutilProcessTree()


try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_SWITCHES, _CORE_WAIT, _OWN_PROCESS_READ = "involuntary_switches_total", "core_wait_total", "process_read"


class OwnProcess:
    """Measures this process without its children: cores, threads, involuntary context switches, waits for a core, and
    bytes read."""

    every_s = 1.0

    def __init__(
        self, clock: Clock = time.monotonic, cpu_seconds: Clock = time.process_time, root: Path = Path("/")
    ) -> None:
        self._rates = Rates(clock)
        self._cpu_seconds = cpu_seconds
        self._files = ProcessFiles(root, os.getpid())

    def read(self) -> Iterator[Reading]:
        """Yields the process's readings. The rates (used cores and bytes read per second) begin with the second
        reading."""
        counters = {"process_cores": self._cpu_seconds(), _OWN_PROCESS_READ: self._files.read_bytes()}
        known = {name: value for name, value in counters.items() if value is not None}
        for name, rate in self._rates.per_second(known).items():
            yield Reading(name, rate)
        yield Reading("process_threads", float(psutil.Process().num_threads()))
        if resource is not None:
            yield Reading(_SWITCHES, float(resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw))
        waited = self._files.core_wait_ns()
        if waited is not None:
            yield Reading(_CORE_WAIT, waited)

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for context switches (only on Unix), waits for a core and bytes read (on Linux)."""
        missing = {} if resource is not None else {_SWITCHES: "only Unix counts them per process"}
        if self._files.core_wait_ns() is None:
            missing[_CORE_WAIT] = "the kernel does not count it: only Linux has /proc/PID/schedstat"
        if self._files.read_bytes() is None:
            missing[_OWN_PROCESS_READ] = "only Linux counts it, in /proc/PID/io"
        return missing

    def close(self) -> None:
        """Does nothing."""
