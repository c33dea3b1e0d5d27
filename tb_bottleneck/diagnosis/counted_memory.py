"""The memory part of the report of telemetry."""

import logging

from tb_bottleneck.memory.telemetry_memory import TelemetryMemory
from tb_bottleneck.report.builders.memory import findings_message, memory_message
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.telemetry.telemetry import Telemetry

_log = logging.getLogger(__name__)


def counted_memory(telemetry: Telemetry, kind: str) -> pb.Memory | None:
    """Returns the memory part of the monitor's counters, or None if no memory was counted.

    An error affects only this part of the report.
    """
    try:
        memory = TelemetryMemory(telemetry, kind)
        account, findings = memory.account, memory.findings()
        if account is None:
            return (
                pb.Memory(evidence_source="telemetry", kind=kind, findings=findings_message(findings))
                if findings
                else None
            )
        return memory_message(account, (), findings)
    except MemoryError:
        raise
    except Exception:
        _log.exception("the memory of one run could not be accounted for")
        return None
