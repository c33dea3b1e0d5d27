"""Diagnosis of an allocator snapshot."""

import logging
import os
from pathlib import PurePath

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.memory.memory_course import course_of
from tb_bottleneck.memory.snapshot.snapshot_findings import findings_of_snapshot, forecasts_of_snapshot
from tb_bottleneck.memory.snapshot.snapshot_memory import snapshot_memory
from tb_bottleneck.report.builders.memory import memory_message
from tb_bottleneck.report.builders.report_builder import (
    ReportIdentity,
    refused_report,
    snapshot_report,
    unreadable_report,
)
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.snapshot.allocator_snapshot import read_snapshot

_log = logging.getLogger(__name__)


def diagnose_snapshot(path: str, *, run: str = ".") -> pb.Report:
    """Returns the report of the allocator snapshot at `path`. `run` is the name of the run in the report. Raises only
    MemoryError.

    A snapshot shows what fills the memory, but has no step times. The report therefore has only a memory part and no
    verdict. For a file that cannot be read, the report states the reason.
    """
    source = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
    identity = ReportIdentity(run, source, "snapshot")
    try:
        memory = snapshot_memory(read_snapshot(path))
        findings, course = findings_of_snapshot(memory), course_of(memory, memory.edges)
        forecasts = forecasts_of_snapshot(memory)
        earlier = memory.unknown_earlier
        message = memory_message(memory.account, memory.all_sites(), findings, forecasts, course, earlier)
        return snapshot_report(identity, memory.device, message)
    except BottleneckError as error:
        return refused_report(identity, error)
    except MemoryError:
        raise
    except Exception as error:  # an error in one file must not affect the others
        _log.exception("the diagnosis of one snapshot failed")
        return unreadable_report(identity, "broken", f"{type(error).__name__}: {error}"[:300])
