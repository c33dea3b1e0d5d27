"""The monitor's writer over a week of steps, in simulated time: what it keeps and what it writes stays bounded."""

import gc
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_bottleneck.monitor.capture.change_detector import MAX_TIMES, ChangeDetector
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps import row_queue
from tb_bottleneck.monitor.steps.row_queue import RowQueue, RowRateLimiter, StepRow
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.writer.heartbeat import Heartbeat
from tb_bottleneck.monitor.writer.run_directory import ProcessRank
from tb_bottleneck.monitor.writer.writer_thread import WriterInputs, WriterThread

DAY_S = 24 * 3600
PACKET_S = 900.0
"""Rarer than in a real run, so that a week takes seconds; each packet has as many rows as the limiter lets pass."""


class Clock:
    """Time that passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns = 1_700_000_000_000_000_000
        monkeypatch.setattr(time, "monotonic", lambda: self.ns / 1e9)
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.ns)
        monkeypatch.setattr(time, "time_ns", lambda: self.ns)
        monkeypatch.setattr(time, "time", lambda: self.ns / 1e9)


class Thermometer:
    """A sampler with a new value at each reading."""

    every_s = PACKET_S

    def __init__(self) -> None:
        self._values = itertools.count()

    def read(self) -> list[Reading]:
        return [Reading("temperature", float(next(self._values) % 60), f"GPU-{index}") for index in range(8)]

    def missing(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass


class Capture:
    """A capture that is asked again and again."""

    def run_changed(self, reason: str) -> None:
        pass

    def request(self, reason: str) -> None:
        pass


def steps(clock: Clock, first: int, length_ns: int) -> Iterator[StepRow]:
    """Yields the steps of one packet; some are longer, and now and then the loader becomes slow."""
    for number in range(first, first + int(PACKET_S * 1e9) // length_ns):
        clock.ns += length_ns
        slow = number // 300 % 2
        yield StepRow(number, clock.ns, length_ns, {"loader_wait": slow * length_ns / 2, "optimizer": 1e5})


def test_a_week_keeps_nothing_and_writes_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, guard, rows = Clock(monkeypatch), Guard(), RowQueue()
    facts: dict[str, Any] = {"cores": 8}
    heartbeat = Heartbeat(tmp_path, ProcessRank(0, 1, ""), StepClock(lambda _: None))
    inputs = WriterInputs(
        rows, [Thermometer()], lambda: facts, dict, lambda: 0.0, heartbeat, lambda _: None, lambda _: None
    )
    writer = WriterThread(tmp_path, inputs, Capture(), object(), guard, PACKET_S)  # type: ignore[arg-type]
    writer._file = file = _opened(tmp_path)
    number, sizes = 0, []
    try:
        for packet in range(int(7 * DAY_S / PACKET_S)):
            for row in steps(clock, number, 10_000_000_000):
                rows.add(row)
                number += 1
            facts["batch_size"] = packet % 7  # facts change all the time
            guard.note("dropped", f"note {packet}")
            writer._sample()
            writer._write()
            if packet % int(DAY_S / PACKET_S) == 0:
                gc.collect()
                sizes.append(len(gc.get_objects()))
    finally:
        file.close()
    assert guard.off == {}
    assert sizes[-1] - sizes[2] < 500, "a day has 96 packets with 90 steps each"
    assert file.path.stat().st_size < 60e6


def _opened(folder: Path) -> Any:
    from tb_bottleneck.monitor.writer.event_file import EventFile

    file = EventFile(folder)
    file.open()
    return file


def test_steps_of_15_us_cost_a_constant_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread added up its whole window for each step: at 0.1 ms per step it used half a core."""
    medians = []
    original = row_queue.median
    monkeypatch.setattr(row_queue, "median", lambda values: medians.append(len(values)) or original(values))
    changes, limiter = ChangeDetector(), RowRateLimiter()
    batch = [StepRow(number, 0, 15_000, {"loader_wait": 1e3}) for number in range(10_000)]
    for _ in range(15):  # less than a window of 3 s
        assert changes.add(batch) is None
        limiter.filter(batch)
    assert changes._window.steps == 150_000
    assert len(changes._window._times) <= MAX_TIMES
    assert sum(medians) <= 101 * 150_000 / row_queue.MEDIAN_EVERY
