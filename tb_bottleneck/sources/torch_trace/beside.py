"""Finds the log of torch.compile that belongs to a trace, in the folder of the trace.

A folder may have logs of several runs, and of several ranks. The right one was begun by a process of the trace, of the
same rank where both are known, before the end of the trace; of several, the last one.
"""

import hashlib
import os
import re
import time
from collections.abc import Collection
from functools import lru_cache

from tb_bottleneck.base.text import NS_PER_S
from tb_bottleneck.sources.local_files import LOCAL
from tb_bottleneck.sources.paths import filesystem_of, is_url
from tb_bottleneck.sources.torch_trace.log import CompileLogFile, process_of

MAX_LOGS = 1_000
"""Of a folder, the newest ones."""

SETTLED_NS = 2 * NS_PER_S
"""A directory that changed later may change again without another time: that of a file system can be this coarse."""

_NAME = re.compile(r"dedicated_log_torch_trace_(?:rank_(\d{1,9})_)?\w{1,40}\.log")

Fact = dict[str, list[list[object]]]


def log_beside(trace: str, processes: Collection[int], rank: int | None, end_us: float | None) -> Fact:
    """Returns the log as the monitor records it (schema/compile_log.py), empty if there is none. Never raises OSError.

    `end_us` is the end of the trace since 1970, None if it has no absolute times.
    """
    found: tuple[float, Fact] = (-1.0, {})
    for path, number in _logs(trace):
        if rank is not None and number not in (None, rank):
            continue
        try:
            if _process(path) not in processes:
                continue
            with filesystem_of(path).open(path) as file:
                log = CompileLogFile(file, float("inf") if end_us is None else end_us)
        except OSError:
            continue
        if log.begin_us is not None and (rank is None or log.rank in (None, rank)):
            found = max(found, (log.begin_us, log.fact), key=lambda entry: entry[0])
    return found[1]


def names_beside(trace: str) -> str:
    """Returns a hash of the names of the logs beside a trace, empty if there is none. Another log changes it.

    A log that grows does not: what is compiled after the end of a trace does not belong to it.
    """
    names = sorted(os.path.basename(path) for path, _ in _logs(trace))
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:16] if names else ""


def _logs(trace: str) -> list[tuple[str, int | None]]:
    """Returns the logs with the ranks in their names. Links are not followed."""
    if is_url(trace):
        return []
    directory = os.path.dirname(os.path.abspath(trace))
    try:
        changed_ns = LOCAL.status(directory).mtime_ns
    except OSError:
        return []
    settled = time.time_ns() - changed_ns > SETTLED_NS
    return (_listed if settled else _listed.__wrapped__)(directory, changed_ns)


@lru_cache(maxsize=64)
def _listed(directory: str, changed_ns: int) -> list[tuple[str, int | None]]:
    """Lists a directory once in each of its states: a job has thousands of traces in one."""
    paths = LOCAL.files_in(directory, _NAME.fullmatch)[:MAX_LOGS]
    ranks = (_NAME.fullmatch(os.path.basename(path)) for path in paths)
    return [(path, int(match[1]) if match and match[1] else None) for path, match in zip(paths, ranks, strict=True)]


@lru_cache(maxsize=4 * MAX_LOGS)
def _process(path: str) -> int | None:
    """Returns the process that began the log: the first line of a log stays as it is. Raises OSError."""
    with filesystem_of(path).open(path) as file:
        return process_of(file)
