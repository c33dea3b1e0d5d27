"""Columns from arguments: their kinds of events, and bounded interning of shapes."""

import msgspec
import numpy as np
import pytest

from tb_bottleneck.sources.trace_event import Args, Event
from tb_bottleneck.trace.columns import event_args
from tb_bottleneck.trace.columns.event_args import NO_SIGNATURE, Signatures, argument_columns, operator_columns
from tb_bottleneck.trace.kinds import Kind


def shaped(**texts):
    return Event(ph="X", args=Args(**{key: msgspec.Raw(text) for key, text in texts.items()}))


def rows(known, *events, kind=Kind.CPU_OP):
    return operator_columns(known, events, np.full(len(events), kind))["signature"].tolist()


def test_shapes_types_and_values_are_interned_together():
    known = Signatures()
    events = [
        shaped(dims=b"[[2]]", types=b'["float"]'),
        shaped(dims=b"[[2]]", types=b'["int"]'),
        shaped(dims_old=b"[[2]]", types=b'["float"]'),
        shaped(types=b'["float"]'),
        Event(ph="X"),
    ]
    assert rows(known, *events) == [1, 2, 1, 0, 0]
    assert list(known.row_of) == [NO_SIGNATURE, (b"[[2]]", b'["float"]', b""), (b"[[2]]", b'["int"]', b"")]


def test_sequence_numbers_are_those_of_operators():
    events = [Event(ph="X", args=Args(sequence=number)) for number in (7, "8", None, "x")]
    of = {
        kind: operator_columns(Signatures(), events, np.full(4, kind))["sequence"].tolist()
        for kind in (Kind.CPU_OP, Kind.KERNEL)
    }
    assert of == {Kind.CPU_OP: [7, 8, 0, 0], Kind.KERNEL: [0, 0, 0, 0]}


def test_only_shapes_of_operators_are_read():
    assert rows(Signatures(), shaped(dims=b"[[2]]"), kind=Kind.KERNEL) == [0]


def test_signatures_beyond_the_bound_are_counted_instead_of_kept(monkeypatch):
    monkeypatch.setattr(event_args, "MAX_SIGNATURE_BYTES", 40)
    known = Signatures()
    events = [shaped(dims=b"[[%d]]" % size) for size in range(10)]
    kept = rows(known, *events)
    assert kept == [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]
    assert known.lost == 5
    assert rows(known, events[0]) == [1]


@pytest.mark.parametrize("ratio", [None, "2", 0.5, float("nan"), 2**70, -3.0])
def test_a_ratio_without_information_gives_no_multiprocessors(ratio):
    event = Event(ph="X", args=Args(grid=[6, 1, 1], blocks_per_sm=ratio))
    assert argument_columns([event], np.array([Kind.KERNEL]))["multiprocessors"].tolist() == [0]


def test_multiprocessors_are_blocks_by_blocks_per_multiprocessor():
    events = [Event(ph="X", args=Args(grid=[528, 2, 1], blocks_per_sm=8.0)), Event(ph="X", args=Args(grid="?"))]
    assert argument_columns(events, np.full(2, Kind.KERNEL))["multiprocessors"].tolist() == [132, 0]


@pytest.mark.parametrize("device", [2**31, -(2**31), 2**60])
def test_an_index_beyond_32_bits_is_no_device(device):
    event = Event(ph="X", args=Args(device=device))
    assert argument_columns([event], np.array([Kind.KERNEL]))["device"].tolist() == [0]


def test_spaces_after_commas_make_no_difference():
    known = Signatures()
    assert rows(known, shaped(dims=b"[[2, 3]]"), shaped(dims=b"[[2,3]]")) == [1, 1]
