"""Tests of the size of a batch, and of the device's time on each step.

Rows are held until the device is done, and no thread waits for it.
"""

from collections import UserDict, namedtuple
from collections.abc import Callable
from types import SimpleNamespace

import numpy
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from tb_bottleneck.monitor.steps.device_timing import MAX_PENDING, DeviceSpans, batch_samples
from tb_bottleneck.monitor.steps.row_queue import StepRow

Pair = namedtuple("Pair", "left right")
BATCH = torch.zeros(7, 3)


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (BATCH, 7),
        ([BATCH, torch.zeros(9)], 7),
        ((BATCH, 3), 7),
        ({"a": BATCH}, 7),
        (UserDict(a=BATCH), 7),
        (Pair(BATCH, 1), 7),
        ([{"a": [BATCH]}], 7),
        (numpy.zeros((7, 2)), 7),
        (torch.tensor(1.0), 1),
        (["a", "b", "c"], 3),
        (SimpleNamespace(num_graphs=5), 5),
        (pack_sequence([torch.zeros(4), torch.zeros(2)]), 2),
        (None, None),
        ([], None),
        ({}, None),
        ("text", None),
        (object(), None),
        ([[[[[[[[BATCH]]]]]]]], None),
    ],
)
def test_samples(batch: object, samples: float | None) -> None:
    assert batch_samples(batch) == samples


class Device:
    """A device with a stream that is `behind` milliseconds behind the host. `now` is the host's clock in
    milliseconds."""

    def __init__(self, behind: float) -> None:
        self.now = 0.0
        self.behind = behind
        self.made = 0
        self.asked = 0
        self.captures = False
        self.fails = False

    def event(self) -> "Event":
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.at = 0.0

    def record(self) -> None:
        assert not self.device.captures, "an event was recorded into a graph"
        if self.device.fails:
            raise RuntimeError("CUDA error: device-side assert triggered")
        self.at = self.device.now

    def query(self) -> bool:
        assert not self.device.captures, "asking an event breaks the capture"
        self.device.asked += 1
        return self.device.now >= self.at + self.device.behind

    def elapsed_time(self, end: "Event") -> float:
        assert end.query()
        return end.at - self.at

    def synchronize(self) -> None:
        raise AssertionError("the monitor made the host wait for the device")


def spans_of(
    device: Device, on_failure: Callable[[Exception], None] = lambda _error: None
) -> tuple[DeviceSpans, list[StepRow]]:
    out: list[StepRow] = []
    return DeviceSpans(out.append, device.event, lambda: device.captures, on_failure), out


def run(device: Device, spans: DeviceSpans, steps: int, first: int = 0) -> None:
    """Runs steps of 10 ms with device work from 2 ms to 9 ms of each."""
    for number in range(first, first + steps):
        device.now += 2
        spans.begin()
        device.now += 7
        spans.end()
        device.now += 1
        spans.close(StepRow(number, int(device.now * 1e6), 10_000_000))


def test_each_row_gets_the_time_between_its_two_events() -> None:
    device = Device(behind=0)
    spans, out = spans_of(device)
    run(device, spans, 3)
    assert [row.figures["device_busy"] for row in out] == [7e6, 7e6, 7e6]


def test_rows_wait_in_order_for_a_device_that_is_behind() -> None:
    device = Device(behind=35)
    spans, out = spans_of(device)
    run(device, spans, 20)
    assert [row.number for row in out] == list(range(16)), "the last four are not through yet"
    assert all(row.figures["device_busy"] == 7e6 for row in out)


def test_events_are_used_again() -> None:
    device = Device(behind=35)
    spans, _ = spans_of(device)
    run(device, spans, 1000)
    assert device.made <= 2 * 6


def test_a_device_that_hangs_costs_figures_but_neither_rows_nor_memory() -> None:
    device = Device(behind=1e12)
    spans, out = spans_of(device)
    run(device, spans, 1000)
    assert [row.number for row in out] == list(range(1000 - MAX_PENDING))
    assert not any("device_busy" in row.figures for row in out)
    assert device.made <= 2 * (MAX_PENDING + 2)
    assert device.asked <= 1000


def test_what_is_left_at_the_end_goes_on_without_waiting() -> None:
    device = Device(behind=35)
    spans, out = spans_of(device)
    run(device, spans, 10)
    spans.drop_pending()
    assert [row.number for row in out] == list(range(10))
    assert "device_busy" not in out[-1].figures


def test_the_last_begin_before_the_work_and_the_last_end_after_it_count() -> None:
    device = Device(behind=0)
    spans, out = spans_of(device)
    spans.begin()
    device.now = 50
    spans.begin()
    device.now = 53
    spans.end()
    device.now = 58
    spans.end()
    spans.close(StepRow(0, 0, 0))
    assert out[0].figures["device_busy"] == 8e6


def test_a_step_without_a_bracket_has_no_figure() -> None:
    device = Device(behind=0)
    spans, out = spans_of(device)
    spans.begin()
    spans.close(StepRow(0, 0, 0))
    spans.end()
    spans.close(StepRow(1, 0, 0))
    assert [row.figures for row in out] == [{}, {}]


def test_no_event_is_touched_while_a_graph_is_captured() -> None:
    device = Device(behind=0)
    spans, out = spans_of(device)
    run(device, spans, 2)
    device.captures = True
    run(device, spans, 2, first=2)
    device.captures = False
    run(device, spans, 2, first=4)
    spans.drop_pending()
    assert [row.number for row in out] == list(range(6))
    assert [("device_busy" in row.figures) for row in out] == [True, True, False, False, True, True]


def test_a_device_failure_is_reported_once_and_rows_go_on() -> None:
    device = Device(behind=0)
    failures: list[Exception] = []
    spans, out = spans_of(device, failures.append)
    run(device, spans, 2)
    device.fails = True
    run(device, spans, 5, first=2)
    spans.drop_pending()
    assert [row.number for row in out] == list(range(7))
    assert len(failures) == 1


def test_a_device_that_is_not_in_use_yet_is_not_begun_with() -> None:
    out: list[StepRow] = []
    spans = DeviceSpans(out.append, lambda: None)
    run(Device(behind=0), spans, 3)
    assert [row.figures for row in out] == [{}, {}, {}]
