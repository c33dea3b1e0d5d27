"""Makes traces with memory events from an allocator with known contents."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tb_bottleneck.trace.trace import Trace, load

HOST = 100


class RecordedAllocator:
    """Writes operators and memory events at the times that a test gives, as the profiler of torch 2 does."""

    def __init__(self, device_type: int = 1, device: int = 0, allocated: int = 0, reserved: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self.allocated, self.reserved = allocated, reserved
        self._device = {"Device Type": device_type, "Device Id": device}
        self._sizes: dict[int, int] = {}
        self._next = 0x7F0000000000

    def span(self, name: str, begin: float, end: float, category: str = "cpu_op", **args: Any) -> None:
        """Adds an operator, annotation or Python frame; times in us."""
        event = {"ph": "X", "cat": category, "name": name, "pid": HOST, "tid": HOST, "ts": begin, "dur": end - begin}
        self.events.append({**event, "args": args})

    def alloc(self, at: float, size: int, address: int | None = None) -> int:
        """Allocates a block and returns its address."""
        if address is None:
            address = self._next
            self._next += 1 << 32
        self._sizes[address] = size
        self._event(at, size, address)
        return address

    def free(self, at: float, address: int, size: int | None = None) -> None:
        """Frees a block; one from before the recording needs its size."""
        self._event(at, -(self._sizes.pop(address) if size is None else size), address)

    def trace(self, **header: Any) -> Trace:
        """Returns the recording, read by the real reader."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.pt.trace.json"
            path.write_text(json.dumps(self.content(**header)))
            return load(str(path))

    def content(self, **header: Any) -> dict[str, Any]:
        """Returns the recording as the JSON of a trace."""
        properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "totalGlobalMem": 85899345920}]
        facts = {"schemaVersion": 1, "deviceProperties": properties, "profile_memory": 1, **header}
        return {**facts, "traceEvents": sorted(self.events, key=lambda event: event["ts"])}

    def _event(self, at: float, size: int, address: int) -> None:
        self.allocated += size
        if self._device["Device Type"]:
            self.reserved = max(self.reserved, self.allocated)
        totals = {"Total Allocated": self.allocated, "Total Reserved": self.reserved}
        event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": HOST}
        self.events.append({**event, "ts": at, "args": {**totals, "Bytes": size, **self._device, "Addr": address}})
