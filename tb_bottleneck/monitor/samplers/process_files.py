"""What Linux tells of one process in /proc: its waits for a core, the bytes that it read, and its memory.

schedstat has the time in which the main thread ran, and in which it waited for a core, in ns (Linux documentation,
scheduler/sched-stats). A kernel built without this information prints zeros. `rchar` of io counts all bytes that read
calls returned, also from the page cache and from pipes; `Pss` of smaps_rollup is the memory of the process, in which
shared pages are divided by the number of their processes (Linux documentation, filesystems/proc).
"""

import re
from pathlib import Path

NO_PSS = "only Linux 4.14 and newer have it, in /proc/PID/smaps_rollup"
_READ = re.compile(r"^rchar: (\d+)$", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


class ProcessFiles:
    """The files of the process with this id; `root` contains `proc/`."""

    def __init__(self, root: Path, pid: int) -> None:
        self._folder = root / f"proc/{pid}"

    def core_wait_ns(self) -> float | None:
        """Returns the time since its start in which the main thread waited for a core; None if it is not counted."""
        try:
            ran, waited = (self._folder / "schedstat").read_text().split()[:2]
            return float(waited) if float(ran) > 0 else None
        except (OSError, ValueError):
            return None

    def read_bytes(self) -> float | None:
        """Returns the bytes read since its start; None if they are not counted, or may not be seen."""
        try:
            match = _READ.search((self._folder / "io").read_text())
        except OSError:
            return None
        return float(match[1]) if match else None

    def has_pss(self) -> bool:
        """Returns True if the kernel tells the proportional set size of this process."""
        return (self._folder / "smaps_rollup").exists()

    def pss_bytes(self) -> float | None:
        """Returns the proportional set size in bytes, in milliseconds; None if it is not known or may not be seen."""
        try:
            match = _PSS.search((self._folder / "smaps_rollup").read_text())
        except OSError:
            return None
        return float(match[1]) * 1024 if match else None
