"""Gloo's collectives run in other threads of the host; the training thread waits without a row of its own."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

MS = 1_000
BASE_NS = 10**18
MAIN, WORKER = 1, 2
DIMS = {"Input Dims": [[4810]], "Input type": ["float"]}


def row(name, begin, end, thread=MAIN, category="cpu_op", **args):
    at = {"pid": 1, "tid": thread, "ts": begin * MS, "dur": (end - begin) * MS}
    return {"ph": "X", "cat": category, "name": name, **at, "args": args}


def summary(tmp_path, *events, rank=1, steps=2, issued=()):
    marks = [row(f"ProfilerStep#{n}", 40 * n, 40 * n + 40, category="user_annotation") for n in range(steps)]
    job = {"backend": "gloo", "rank": rank, "world_size": 2, "pg_config": [{"pg_name": "4", "ranks": [0, 1]}]}
    header = {"distributedInfo": job, "record_shapes": 1, "baseTimeNanoseconds": BASE_NS}
    header["tb_bottleneck_late"] = {"context": {"host_collectives": list(issued)}}
    path = tmp_path / "rank.pt.trace.json"
    path.write_text(json.dumps({**header, "traceEvents": [*marks, *events]}))
    trace = load(str(path))
    return summary_of(Recording(trace, find_steps(trace)))


def step(begin, *, row_end=30.0, slice_at=None):
    """Computes 20 ms, waits from then to 30 ms, and goes on; the row of the collective ends at `row_end`."""
    events = [
        row("aten::mm", begin, begin + 20),
        row("gloo:all_reduce", begin + 20, begin + row_end, WORKER, "user_annotation", **DIMS),
        row("aten::add", begin + 30, begin + 39),
    ]
    return events + ([row("aten::ones", begin + slice_at, begin + slice_at + 0.01)] if slice_at else [])


def waits(found):
    points = found.points
    ends = points.take(points.resumes == 1)
    return list(zip(ends.time.tolist(), ends.communication.tolist(), strict=True))


def test_the_training_thread_waits_until_the_row_ends(tmp_path):
    found = summary(tmp_path, *step(0), *step(40))
    assert found.communications.operation.tolist() == [Operation.ALL_REDUCE] * 2
    assert found.communications.bytes.tolist() == [4810 * 4] * 2
    assert waits(found) == [(30_000_000, 0), (70_000_000, 1)]


def test_a_row_that_ends_late_does_not_hide_the_wait(tmp_path):
    """On a busy machine, the thread of Gloo ends its row after it has released the training thread."""
    found = summary(tmp_path, *step(0, row_end=31.5), *step(40))
    assert waits(found)[0] == (30_000_000, 0)
    assert found.communications.end[0] == 30_000_000, "the collective was done then"


def test_the_last_row_may_end_after_the_window(tmp_path):
    found = summary(tmp_path, *step(0), *step(40, row_end=95.0)[:2])
    assert waits(found)[1] == (80_000_000, 1)


def test_a_short_row_in_the_wait_does_not_end_it(tmp_path):
    found = summary(tmp_path, *step(0, slice_at=20.5), *step(40))
    assert waits(found)[0] == (30_000_000, 0)
    assert found.own[:, Own.HOST].sum() < 4_000_000


def test_a_rank_that_goes_on_does_not_wait(tmp_path):
    overlapped = [
        row("aten::mm", 0, 20),
        row("gloo:all_reduce", 5, 15, WORKER, "user_annotation", **DIMS),
        row("aten::add", 20, 39),
    ]
    assert waits(summary(tmp_path, *overlapped, *step(40))) == [(70_000_000, 1)]


@pytest.mark.parametrize(("name", "operation"), [("send", Operation.SEND), ("recv", Operation.RECV)])
def test_the_peer_of_a_message_is_an_argument_of_its_operator(tmp_path, name, operation):
    concrete = {
        "Concrete Inputs": ["", "", "0", "0"],
        "Input Dims": [[[8]], [], [], []],
        "Input type": ["", "", "", ""],
    }
    message = [
        row(f"c10d::{name}{'_' if name == 'recv' else ''}", 21, 22, **concrete),
        row(f"gloo:{name}", 21.5, 25, MAIN, "user_annotation", **DIMS),
    ]
    found = summary(tmp_path, row("aten::mm", 0, 20), *message, row("aten::mm", 25, 39), *step(40))
    first = found.communications.take(slice(0, 1))
    assert (first.operation[0], first.peer[0]) == (operation, 0)


def issued_at(ms, group, number, name="gloo:all_reduce", elements=4810):
    return [BASE_NS + int(ms * 1e6), name, elements, group, number]


def test_groups_and_numbers_are_those_of_the_monitor(tmp_path):
    """The first one was issued before the recording, and the others differ in name or size."""
    other = [issued_at(5, "9", 1, name="gloo:broadcast"), issued_at(6, "9", 2, elements=7)]
    issued = [issued_at(-30, "4", 7), *other, issued_at(20, "4", 8), issued_at(60, "4", 9)]
    found = summary(tmp_path, *step(0), *step(40), issued=issued)
    assert [(group.name, group.ranks) for group in found.groups] == [("4", (0, 1))]
    assert found.communications.sequence.tolist() == [8, 9]


@pytest.mark.parametrize(
    "issued",
    [
        [issued_at(60, "4", 9)],
        [issued_at(20, "4", -1)],
        [["x"], 3, None, [1, "gloo:all_reduce", 4810, 5, 6]],
        [issued_at(20, "4", 1 << 70)],
    ],
    ids=["only the second", "a negative number", "malformed", "a huge number"],
)
def test_a_collective_that_the_monitor_does_not_know_has_no_group(tmp_path, issued):
    found = summary(tmp_path, *step(0), *step(40), issued=issued)
    assert (found.communications.sequence[0], found.groups[found.communications.group[0]].name) == (-1, "")
