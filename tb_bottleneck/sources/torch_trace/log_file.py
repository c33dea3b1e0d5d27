"""Finds the log of torch.compile that belongs to a trace, in the folder of the trace.

A folder may have logs of several runs and ranks. The log of a trace was begun by a process of the trace, with the same
rank if both ranks are known, before the end of the trace. If several logs fit, the last one is used.
"""

import hashlib
import os
import re
import time
from collections.abc import Collection
from functools import lru_cache

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.sources.file_system import LOCAL
from tb_bottleneck.sources.paths import filesystem_of, is_url
from tb_bottleneck.sources.torch_trace.log import CompileLogFile, process_of

MAX_LOGS = 1_000
"""Most logs of a folder that are considered. If there are more, the newest are used."""

SETTLED_NS = 2 * NS_PER_S
"""A directory that changed less than this many ns ago may change again without a new time of change, because the times
of some file systems are this coarse."""

_NAME = re.compile(r"dedicated_log_torch_trace_(?:rank_(\d{1,9})_)?\w{1,40}\.log")

Fact = dict[str, list[list[object]]]


def log_beside(trace: str, processes: Collection[int], rank: int | None, end_us: float | None) -> Fact:
    """Returns the log of the trace at the path `trace`, as the monitor records a log (schema/compile_entries.py).

    Returns an empty dict if there is no log. `processes` are the ids of the processes in the trace. `rank` is the rank
    of the trace, or None if it is unknown. `end_us` is the end of the trace in us since 1970, or None if the trace has
    no absolute times. Never raises OSError.
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
    """Returns a hash of the names of the logs beside the trace at the path `trace`; an empty text if there is no log.

    A new log changes the hash. A log that grows does not change the hash, because compilations after the end of a trace
    do not belong to the trace.
    """
    names = sorted(os.path.basename(path) for path, _ in _logs(trace))
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:16] if names else ""


def _logs(trace: str) -> list[tuple[str, int | None]]:
    """Returns pairs for the logs in the folder of `trace`: the path, and the rank in the file name or None. Links are
    not followed."""
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
    """Returns (path, rank or None) for each log in a directory. `changed_ns` is when the directory changed last; it
    makes the cached result invalid. (A job has thousands of traces in one directory.)"""
    paths = LOCAL.files_in(directory, _NAME.fullmatch)[:MAX_LOGS]
    ranks = (_NAME.fullmatch(os.path.basename(path)) for path in paths)
    return [(path, int(match[1]) if match and match[1] else None) for path, match in zip(paths, ranks, strict=True)]


@lru_cache(maxsize=4 * MAX_LOGS)
def _process(path: str) -> int | None:
    """Returns the id of the process that began the log at `path`; None if it is no log. The result is cached, because
    the first line of a log does not change.

    Raises OSError."""
    with filesystem_of(path).open(path) as file:
        return process_of(file)
