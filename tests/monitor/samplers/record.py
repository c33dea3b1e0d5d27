"""Records NVML's results on this machine in the format of `replay.py`, and measures the time of each call.

    python tests/monitor/samplers/record.py nvml/NAME.json [--seconds 10]

Run it while the GPU is busy. UUIDs are replaced and process ids renumbered, so nothing in the file identifies the
machine.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor.nvml.binding import Nvml
from tb_bottleneck.monitor.nvml.queries import queries
from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice
from tb_bottleneck.monitor.samplers.gpu_sampler import GpuSampler


class Recorder:
    """A driver that forwards every query and stores the result."""

    def __init__(self, driver: Any, clock: Callable[[], float] = time.perf_counter) -> None:
        self._driver = driver
        self._clock = clock
        self._listed: list[GpuDevice] = []
        self._moments: list[dict[str, dict[str, Any]]] = []
        self.microseconds: dict[str, list[float]] = {}

    def open(self) -> None:
        self._driver.open()

    def close(self) -> None:
        self._driver.close()

    def gpus(self) -> Sequence[GpuDevice]:
        self._listed = list(self._driver.gpus())
        return self._listed

    def begin_moment(self) -> None:
        """Begins a new moment: later results belong to it."""
        self._moments.append({})

    def call(self, function: str, uuid: str, *arguments: int) -> Any:
        known = arguments if function != "nvmlDeviceGetProcessUtilization" else ()
        name = " ".join([function, *map(str, known)])
        return self._kept(uuid, name, lambda: self._driver.call(function, uuid, *arguments))

    def field(self, uuid: str, field_id: int, scope: int = 0) -> float:
        return self._kept(uuid, f"field {field_id} {scope}", lambda: self._driver.field(uuid, field_id, scope))

    def performance(self, gpu: GpuDevice, metrics: Sequence[int]) -> Mapping[int, float]:
        return self._kept(gpu.uuid, "performance", lambda: self._driver.performance(gpu, metrics))

    def recording(self, about: str) -> dict[str, Any]:
        """Returns the file's content, without anything that identifies this machine or its processes."""
        gpus = [{"uuid": one.uuid, "board": one.board, "name": one.name, "bus": one.bus} for one in self._listed]
        found = _without_ids({"about": about, "gpus": gpus, "moments": self._moments}, {})
        text = json.dumps(found, indent=2)
        for number, uuid in enumerate(sorted({name for one in self._listed for name in (one.uuid, one.board)})):
            kind = uuid.partition("-")[0]
            text = re.sub(re.escape(uuid), f"{kind}-{number:08d}-0000-0000-0000-000000000000", text)
        return json.loads(text)

    def _kept(self, uuid: str, name: str, ask: Callable[[], Any]) -> Any:
        began = self._clock()
        try:
            answer = kept = ask()
        except DriverError as refusal:
            kept = {"refused": str(refusal), "lasting": refusal.lasting, "lost": refusal.lost}
            raise
        finally:
            self.microseconds.setdefault(name, []).append((self._clock() - began) * 1e6)
            self._moments[-1].setdefault(uuid, {})[name] = kept
        return answer


def _without_ids(value: Any, pids: dict[int, int]) -> Any:
    """Returns a copy with every process id replaced consistently."""
    if isinstance(value, Mapping):
        return {
            str(name): pids.setdefault(part, 1000 + len(pids)) if name == "pid" else _without_ids(part, pids)
            for name, part in value.items()
        }
    return [_without_ids(part, pids) for part in value] if isinstance(value, list | tuple) else value


def main() -> None:
    """Records and prints the table of calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    recorder = Recorder(Nvml())
    gpus = GpuSampler(recorder, queries(), lambda gpus: gpus)
    for _ in range(options.seconds):
        recorder.begin_moment()
        list(gpus.read())
        time.sleep(1.0)
    for signal, because in gpus.missing().items():
        print(f"missing: {signal}: {because}")
    gpus.close()
    print("| call | asked | median | largest |\n|---|---|---|---|")
    for name, times in sorted(recorder.microseconds.items(), key=lambda one: -statistics.median(one[1])):
        print(f"| {name} | {len(times)} | {statistics.median(times):.0f} µs | {max(times):.0f} µs |")
    about = f"Recorded on a card, {options.seconds} readings a second apart; UUIDs and process ids are made up."
    options.file.write_text(json.dumps(recorder.recording(about), indent=1) + "\n")


if __name__ == "__main__":
    main()
