"""Telemetry of steps with given times, as the monitor would write it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from helpers.telemetry_files import context

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.schema.signals import ENDED
from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.telemetry.telemetry import Telemetry

BEGIN = 1_700_000_000_000_000_000
MS = 1_000_000


def packet(wall_ms: Sequence[float], begin: int = BEGIN, **columns: Sequence[float]) -> Packet:
    """Returns a packet with one row per step. Columns that are times are in ms, others are as they are."""
    written, wall = Packet(sequence=0), np.asarray(wall_ms, float) * MS
    rows = written.steps
    rows.number.extend(range(len(wall)))
    rows.wall_ns.extend(wall.tolist())
    rows.end_unix_ns.extend((begin + np.cumsum(wall)).astype(np.int64).tolist())
    for name, values in columns.items():
        is_count = name in ("samples", "profiled")
        rows.columns.add(name=name, values=(np.asarray(values, float) * (1 if is_count else MS)).tolist())
    return written


def recording_of(written: Packet, facts: Mapping[str, Any] | None = None, *, ended: bool = True) -> TelemetryRecording:
    """Returns the recording of this packet."""
    if ended:
        written.notes.add(code=ENDED, unix_ns=written.steps.end_unix_ns[-1])
    telemetry = Telemetry()
    telemetry.add([context({"device_kind": "cpu"} | dict(facts or {})), written])
    return TelemetryRecording(telemetry)
