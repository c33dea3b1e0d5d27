"""Tests of the frames on a pipe."""

import io

import pytest

from tb_bottleneck.plugin.workers.ipc import FrameKind, pack_share, read_frame, unpack_share, write_frame


def test_frames_are_read_as_they_were_written() -> None:
    pipe = io.BytesIO()
    sent = [(FrameKind.REQUEST, b"{}"), (FrameKind.REPORT, b""), (FrameKind.FAILURE, b"\n" * 70_000)]
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
