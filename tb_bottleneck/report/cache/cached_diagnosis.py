"""Reuses the report of a recording if the same code has already diagnosed the same file."""

import os
from collections.abc import Callable

from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.report_store import Store, identity_of
from tb_bottleneck.schema.bottleneck_pb2 import Report

Analyse = Callable[..., Report]
Progress = Callable[[int, int], None]

_FINISHED = ("ok", "degraded", "incomplete")


def diagnose_cached(
    analyse: Analyse, store: Store | None, path: str, *, run: str = ".", progress: Progress | None = None
) -> Report:
    """Returns the stored result of `analyse(path, run=run, progress=progress)` from `store`. If there is none, calls
    `analyse`, and stores the result if it is repeatable (`is_repeatable`).

    Raises only what `analyse` raises."""
    identity = identity_of(path)
    saved = store.get(identity) if store is not None and identity is not None else None
    if saved is not None:
        return named(saved, path, run)
    report = analyse(path, run=run, progress=progress)
    # If the file changed while it was read, the report belongs to neither of its states.
    if store is not None and identity is not None and is_repeatable(report) and identity_of(path) == identity:
        store.put(identity, report)
    return report


def listed(store: Store | None, path: str, run: str) -> Report | None:
    """Returns what a list shows of the report that is stored next to the trace at `path`; None if there is none, or if
    the whole report is in `store`."""
    identity = identity_of(path)
    saved = sidecar.read(path, identity) if identity is not None else None
    if saved is None or identity is None or (store is not None and store.get(identity) is not None):
        return None
    return named(saved, path, run)


def named(report: Report, path: str, run: str) -> Report:
    """Returns `report` with the name of the run and of the file at `path`, which are not stored."""
    # File names are bytes; messages accept only valid text.
    report.run, report.source = run, os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
    return report


def is_repeatable(report: Report) -> bool:
    """Returns True if another diagnosis of the same file would give the same report: the report is complete, and no
    rule failed."""
    if report.broken_parts:
        return False
    return report.health.status in _FINISHED and all(verdict.status != "broken" for verdict in report.regimes)
