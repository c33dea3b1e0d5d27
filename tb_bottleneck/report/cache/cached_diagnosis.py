"""Reuses the report of a recording if the same code has already diagnosed the same file."""

import os
from collections.abc import Callable

from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.file_identity import identity_of
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.schema.bottleneck_pb2 import Report

Analyse = Callable[..., Report]
Progress = Callable[[int, int], None]

_FINISHED = ("ok", "degraded", "incomplete")


def diagnose_cached(
    analyse: Analyse, store: Store | None, path: str, *, run: str = ".", progress: Progress | None = None
) -> Report:
    """Returns the result of `analyse(path, run=run, progress=progress)`, from the store or the sidecar if possible.

    Raises only what `analyse` raises.
    """
    identity = identity_of(path)
    if identity is None:
        return analyse(path, run=run, progress=progress)
    saved = (store.get(identity) if store else None) or sidecar.read(path, identity)
    if saved is not None:
        # File names are bytes; messages accept only valid text.
        saved.run, saved.source = run, os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
        return saved
    report = analyse(path, run=run, progress=progress)
    # If the file changed while it was read, the report belongs to neither of its states.
    if store is not None and is_repeatable(report) and identity_of(path) == identity:
        store.put(identity, report)
    return report


def is_repeatable(report: Report) -> bool:
    """Returns True if another diagnosis gives the same report. A file may grow, or a rule may run out of memory."""
    if report.broken_parts:
        return False
    return report.health.status in _FINISHED and all(verdict.status != "broken" for verdict in report.regimes)
