"""Reads untrusted files in this process, with the memory that the process for them would have."""

import contextlib
import io
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

from tb_bottleneck.base.errors import TooLarge
from tb_bottleneck.sources import flight_recorder
from tb_bottleneck.sources.snapshot import allocator_snapshot

MORE_BYTES = 2 << 30


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Limits the memory of this process to MORE_BYTES more than it has now."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MORE_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _run(function: str, data: Iterable[bytes]) -> bytes:
    try:
        with little_memory():
            return bytes(pkgutil.resolve_name(function)(io.BytesIO(b"".join(data))))
    except MemoryError:
        raise TooLarge("The file needs more memory than the limit.") from None


@contextlib.contextmanager
def in_this_process() -> Iterator[None]:
    """Reads pickles in this process, because a process for each takes a tenth of a second."""
    with (
        mock.patch.object(allocator_snapshot, "run_limited", _run),
        mock.patch.object(flight_recorder, "run_limited", _run),
    ):
        yield
