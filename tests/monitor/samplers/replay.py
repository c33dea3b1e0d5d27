"""Replays NVML results from a file, so that tests need no GPU.

    {"about": "...", "gpus": [{"uuid", "board", "name", "bus"}], "moments": [{UUID: {CALL: ANSWER}}]}

CALL is a function and its arguments ("nvmlDeviceGetClockInfo 1"), "field ID SCOPE" or "performance"; ANSWER is what
NVML's result, or {"refused": "...", "lasting": false, "lost": false}. Each moment contains the changes since the last
one. A call that is in no moment was permanently refused.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice

RECORDINGS = Path(__file__).parent / "nvml"


class Replay:
    """A driver with recorded results. `moment` is the current one."""

    def __init__(self, name: str) -> None:
        self.recording = json.loads((RECORDINGS / name).read_text())
        self.moment = 0
        self.asked: list[str] = []
        self.opened = 0
        self.closed = 0
        self.broken: DriverError | None = None

    def open(self) -> None:
        self.opened += 1
        if self.broken:
            raise self.broken

    def close(self) -> None:
        self.closed += 1

    def gpus(self) -> Sequence[GpuDevice]:
        return [GpuDevice(**gpu) for gpu in self.recording["gpus"]]

    def call(self, function: str, uuid: str, *arguments: int) -> Any:
        # The time of the last sample is one of ours, not of the recording's.
        known = arguments if function != "nvmlDeviceGetProcessUtilization" else ()
        return self._answer(uuid, " ".join([function, *map(str, known)]))

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        return float(self._answer(uuid, f"field {field_id} {scope}"))

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        found = self._answer(gpu.uuid, "performance")
        return {metric: found[str(metric)] for metric in metrics if str(metric) in found}

    def _answer(self, uuid: str, call: str) -> Any:
        self.asked.append(call)
        if self.broken:
            raise self.broken
        for moment in reversed(self.recording["moments"][: self.moment + 1]):
            if call in moment.get(uuid, {}):
                answer = moment[uuid][call]
                if isinstance(answer, dict) and "refused" in answer:
                    raise DriverError(answer["refused"], lasting=answer["lasting"], lost=answer["lost"])
                return answer
        raise DriverError("not supported", lasting=True)
