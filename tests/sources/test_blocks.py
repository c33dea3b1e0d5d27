import gzip
import os
import tracemalloc
import zlib

import pytest

from tb_bottleneck.base.errors import NotFound, StillGrowing, TooLarge, Unreadable
from tb_bottleneck.sources.blocks import SETTLED_S, Blocks, Bounds
from tb_bottleneck.sources.file_system import Status

TEXT = b"".join(b"line %d of some text\n" % number for number in range(200))
NOW = 1_000_000.0


def file_of(tmp_path, data, written=NOW - 3600):
    path = tmp_path / "file"
    path.write_bytes(data)
    os.utime(path, (written, written))
    return str(path)


def read(blocks):
    return b"".join(blocks)


def drop(blocks):
    for block in blocks:
        assert len(block) <= 1 << 21


@pytest.mark.parametrize("block", [1, 2, 3, 10, 4096])
def test_plain_and_zipped_files_give_the_same_bytes(tmp_path, block):
    for data in (TEXT, gzip.compress(TEXT), gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])):
        blocks = Blocks(file_of(tmp_path, data), Bounds(block=block))
        assert read(blocks) == TEXT
        assert (blocks.truncated, blocks.inflated) == ("", len(TEXT))
        assert blocks.bytes_read == blocks.bytes_total == len(data)


@pytest.mark.parametrize("behind", [b"\0", bytes(1000), b"garbage", b"\x1f", b"\x1fgarbage"])
def test_garbage_after_the_last_member_is_left_out(tmp_path, behind):
    blocks = Blocks(file_of(tmp_path, gzip.compress(TEXT) + behind))
    assert read(blocks) == TEXT


@pytest.mark.parametrize("kept", [10, 11, 20, 100, -9, -8, -1])
@pytest.mark.parametrize("block", [1, 2, 4096])
def test_a_stream_that_ends_early_gives_all_its_bytes(tmp_path, kept, block):
    """zlib itself keeps the part that does not fit into a small block."""
    data = gzip.compress(TEXT + b"x" * 50_000)[:kept]
    blocks = Blocks(file_of(tmp_path, data), Bounds(block=block))
    assert read(blocks) == zlib.decompressobj(wbits=31).decompress(data)
    assert blocks.truncated == "the gzip stream ends early"


def test_a_damaged_stream_gives_the_bytes_before_the_damage(tmp_path):
    """If a whole block is requested, zlib raises at a wrong checksum and does not return the block."""
    data = bytearray(gzip.compress(TEXT))
    data[-5] ^= 1
    blocks = Blocks(file_of(tmp_path, bytes(data)))
    assert read(blocks) == TEXT
    assert blocks.truncated == "the gzip stream is damaged (incorrect data check)"


def test_a_bomb_is_refused_in_little_memory(tmp_path):
    path = file_of(tmp_path, gzip.compress(bytes(100_000_000), 1))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match=r"larger than 0\.0625 GiB uncompressed, .* Record fewer steps"):
            drop(Blocks(path, Bounds(inflated=1 << 26)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(NotFound, match="No such file"):
        read(Blocks(str(tmp_path / "none")))
    with pytest.raises(NotFound, match="No such file"):
        read(Blocks(file_of(tmp_path, b"") + "/below"))
    with pytest.raises(NotFound, match="can have this name"):
        read(Blocks("a\0b"))
    with pytest.raises(Unreadable, match="Is a directory"):
        read(Blocks(str(tmp_path)))


# --- growing ---


def grown(before, after):
    """Returns a stat with a size that changes between the first call and the second."""
    sizes = iter((before, after))

    def stat(file):
        return Status("file", next(sizes), os.fstat(file.fileno()).st_mtime_ns)

    return stat


def test_a_file_that_grew_while_it_was_read_is_still_growing(tmp_path):
    blocks = Blocks(file_of(tmp_path, TEXT), clock=lambda: NOW, stat=grown(10, 20))
    assert read(blocks) == TEXT
    with pytest.raises(StillGrowing, match=r"grew while it was read: read it again later"):
        blocks.refuse_growing()


@pytest.mark.parametrize("age", [0.0, SETTLED_S - 0.1, -1.0])
def test_a_file_just_written_may_be_growing(tmp_path, age):
    blocks = Blocks(file_of(tmp_path, TEXT, NOW - age), clock=lambda: NOW)
    read(blocks)
    with pytest.raises(StillGrowing, match=r"was written to . s ago"):
        blocks.refuse_growing()


@pytest.mark.parametrize("block", [1, 4096])
@pytest.mark.parametrize("behind", [b"", bytes(1000), b"garbage"])
def test_a_closed_stream_is_whole_however_new_it_is(tmp_path, behind, block):
    for data in (gzip.compress(TEXT) + behind, gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:]) + behind):
        blocks = Blocks(file_of(tmp_path, data, NOW), Bounds(block=block), clock=lambda: NOW)
        read(blocks)
        blocks.refuse_growing()


def test_damage_is_not_taken_for_a_missing_end(tmp_path):
    data = bytearray(gzip.compress(TEXT))
    data[-5] ^= 1
    blocks = Blocks(file_of(tmp_path, bytes(data), NOW), clock=lambda: NOW)
    read(blocks)
    blocks.refuse_growing()
    assert "damaged" in blocks.truncated


@pytest.mark.parametrize("data", [gzip.compress(TEXT)[:-1], gzip.compress(TEXT) + gzip.compress(TEXT)[:20]])
def test_a_stream_without_its_end_may_be_growing(tmp_path, data):
    blocks = Blocks(file_of(tmp_path, data, NOW), clock=lambda: NOW)
    read(blocks)
    with pytest.raises(StillGrowing, match="may follow"):
        blocks.refuse_growing()


@pytest.mark.parametrize("age", [SETTLED_S, 3600.0, -3600.0])
def test_a_file_written_some_time_ago_is_not_growing(tmp_path, age):
    """A file from the future is not growing either: the clock is wrong, and the file would be reported for ever."""
    blocks = Blocks(file_of(tmp_path, TEXT, NOW - age), clock=lambda: NOW)
    read(blocks)
    blocks.refuse_growing()
