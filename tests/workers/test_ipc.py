"""Tests of the frames on a pipe, and of the limits on worker processes with their environment variables."""

import io
import os
import threading

import pytest

from tb_bottleneck.base.limited_process import GIB
from tb_bottleneck.workers.ipc import (
    FrameKind,
    WorkerLimits,
    pack_share,
    read_frame,
    unpack_share,
    write_frame,
)


def test_the_environment_changes_the_bounds() -> None:
    given = {
        "TB_BOTTLENECK_PROCESSES": "3",
        "TB_BOTTLENECK_MEMORY_GIB": "1.5",
        "TB_BOTTLENECK_SECONDS_PER_FILE": "60",
    }
    limits = WorkerLimits.from_environment(given)
    assert (limits.processes, limits.memory_bytes, limits.seconds_per_file) == (3, GIB * 3 // 2, 60.0)


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 1), (3, 2), (64, 2)])
def test_one_core_is_left_to_other_processes(monkeypatch: pytest.MonkeyPatch, cores: int, processes: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert WorkerLimits.from_environment({}).processes == processes


@pytest.mark.parametrize("value", ["many", "0", "-1", "inf", "nan"])
@pytest.mark.parametrize("name", ["PROCESSES", "MEMORY_GIB", "SECONDS_PER_FILE"])
def test_what_is_no_positive_number_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"TB_BOTTLENECK_{name}"):
        WorkerLimits.from_environment({f"TB_BOTTLENECK_{name}": value})


def test_the_contract_names_the_defaults() -> None:
    from pathlib import Path

    import tb_bottleneck.plugin

    contract = (Path(tb_bottleneck.plugin.__file__).parent / "http_api.md").read_text()
    assert f"`TB_BOTTLENECK_MEMORY_GIB` ({WorkerLimits.memory_bytes // GIB})" in contract
    assert f"`TB_BOTTLENECK_SECONDS_PER_FILE` ({WorkerLimits.seconds_per_file:g})" in contract


def test_a_very_large_limit_is_accepted_by_the_system() -> None:
    """With a limit beyond any machine, each process ended before it read anything, and a timer raised an exception."""
    limits = WorkerLimits.from_environment(
        {"TB_BOTTLENECK_MEMORY_GIB": "1e300", "TB_BOTTLENECK_SECONDS_PER_FILE": "1e300"}
    )
    assert limits.memory_bytes < 1 << 62
    assert limits.seconds_per_file < threading.TIMEOUT_MAX


def test_frames_are_read_as_they_were_written() -> None:
    pipe = io.BytesIO()
    sent = [(FrameKind.REQUEST, b"{}"), (FrameKind.ANSWER, b""), (FrameKind.FAILURE, b"\n" * 70_000)]
    for kind, payload in sent:
        write_frame(pipe, kind, payload)
    pipe.seek(0)
    assert [read_frame(pipe) for _ in range(4)] == [*sent, None]


@pytest.mark.parametrize("kept", range(7))
def test_a_frame_that_breaks_off_is_an_end(kept: int) -> None:
    pipe = io.BytesIO()
    write_frame(pipe, FrameKind.REQUEST, b"abc")
    assert read_frame(io.BytesIO(pipe.getvalue()[:kept])) is None


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="Z"):
        read_frame(io.BytesIO(b"Z\0\0\0\0"))


def test_a_share_is_exact() -> None:
    assert unpack_share(pack_share(0.35)) == 0.35
