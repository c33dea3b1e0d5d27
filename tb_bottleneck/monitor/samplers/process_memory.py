"""The memory of the training process: what is resident, and its proportional share (PSS).

Pages that several processes map count in full in the resident size of each, but divided by their number in the PSS.
After a fork, as of a loader's workers, only the PSS of all processes can be summed.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tb_bottleneck.monitor.samplers.process_files import NO_PSS, ProcessFiles
from tb_bottleneck.monitor.samplers.rates import Clock
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.samplers.seldom import Seldom

_PSS = "process_pss"


class ProcessMemory:
    """This process without its children. The PSS is read seldom: the kernel walks all pages for it."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._files = ProcessFiles(root, os.getpid())
        self._seldom = Seldom(clock)

    def read(self) -> Iterator[Reading]:
        """Yields the resident size, and seldom the PSS."""
        yield Reading("process_memory", float(psutil.Process().memory_info().rss))
        pss = self._seldom.read(self._files.pss_bytes)
        if pss is not None:
            yield Reading(_PSS, pss)

    def missing(self) -> Mapping[str, str]:
        """Returns the PSS if the kernel does not tell it."""
        return {} if self._files.has_pss() else {_PSS: NO_PSS}

    def close(self) -> None:
        """Does nothing."""
