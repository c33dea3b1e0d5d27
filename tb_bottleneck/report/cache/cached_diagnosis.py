"""Judges a recording unless that was done before: the report of the same file by the same code is used again."""

import os
from collections.abc import Callable

from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.file_identity import identity_of
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.schema.bottleneck_pb2 import Report

Analyse = Callable[..., Report]
Progress = Callable[[int, int], None]

_FINISHED = ("ok", "degraded", "incomplete")


def remembered(
    analyse: Analyse, store: Store | None, path: str, *, run: str = ".", progress: Progress | None = None
) -> Report:
    """What `analyse(path, run=run, progress=progress)` returns, from the store or from beside the trace if it is there.

    Raises what `analyse` raises, and nothing of its own.
    """
    identity = identity_of(path)
    if identity is None:
        return analyse(path, run=run, progress=progress)
    known = (store.get(identity) if store else None) or sidecar.read(path, identity)
    if known is not None:
        # Names on disk are bytes, and messages refuse what is not text.
        known.run, known.source = run, os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
        return known
    report = analyse(path, run=run, progress=progress)
    # Only what was read as it still is; a file that changed meanwhile has a report of neither state.
    if store is not None and is_worth_keeping(report) and identity_of(path) == identity:
        store.put(identity, report)
    return report


def is_worth_keeping(report: Report) -> bool:
    """Whether it would come out the same again: a file may grow, or a rule fail for lack of memory."""
    return report.health.status in _FINISHED and all(verdict.status != "broken" for verdict in report.regimes)
