"""Files compressed with zstd and lz4 are read like those with gzip, in bounded memory, and their damage is reported."""

import os
import sys
import tracemalloc
from functools import partial

import pytest

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.sources.blocks import Blocks, Bounds
from tb_bottleneck.sources.logdir import scan

zstandard = pytest.importorskip("zstandard")
lz4 = pytest.importorskip("lz4.frame")

TEXT = b"".join(b"line %d of some text\n" % number for number in range(20_000))
TRACE = b'{"traceEvents": [' + b'{"ph": "X", "name": "a", "ts": 1, "dur": 1},' * 3_000 + b'{"ph": "X", "ts": 1}]}'
FORMATS = {"zst": zstandard.ZstdCompressor().compress, "lz4": lz4.compress}
CHECKED = {
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "lz4": partial(lz4.compress, content_checksum=True),
}
NAMES = {"zst": "zstd", "lz4": "lz4"}


def file_of(tmp_path, data, name="file"):
    path = tmp_path / name
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return str(path)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("block", [7, 4096, 1 << 18])
def test_the_same_bytes_in_blocks_of_the_same_size(tmp_path, ending, block):
    compress = FORMATS[ending]
    for data in (compress(TEXT), compress(TEXT[:999]) + compress(TEXT[999:])):
        blocks = Blocks(file_of(tmp_path, data), Bounds(block=block))
        parts = list(blocks)
        assert b"".join(parts) == TEXT
        assert {len(part) for part in parts[:-1]} <= {block}
        assert (blocks.truncated, blocks.inflated, blocks.bytes_read) == ("", len(TEXT), len(data))


@pytest.mark.parametrize("ending", FORMATS)
def test_a_stream_that_ends_early_gives_what_it_has(tmp_path, ending):
    data = FORMATS[ending](os.urandom(300_000).hex().encode())
    for kept in (10, len(data) // 2, len(data) - 1):
        blocks = Blocks(file_of(tmp_path, data[:kept]))
        assert bytes.fromhex(b"".join(blocks).decode()[: kept // 4 * 2]) is not None
        assert blocks.truncated == f"the {NAMES[ending]} stream ends early"
    assert blocks.inflated > 300_000


@pytest.mark.parametrize("ending", FORMATS)
def test_a_damaged_stream_is_reported(tmp_path, ending):
    data = bytearray(CHECKED[ending](os.urandom(300_000).hex().encode()))
    data[len(data) // 2] ^= 1
    blocks = Blocks(file_of(tmp_path, bytes(data)))
    assert 100_000 < len(b"".join(blocks)) <= 600_000
    assert blocks.truncated.startswith(f"the {NAMES[ending]} stream is damaged (")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_bomb_costs_no_memory(tmp_path, ending):
    data = FORMATS[ending](bytes(200_000_000))
    path = file_of(tmp_path, data)
    del data
    tracemalloc.start()
    try:
        for block in Blocks(path):
            assert len(block) <= 1 << 18
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", FORMATS)
def test_a_trace_is_found_and_read(tmp_path, ending):
    for name in ("a.pt.trace.json", "b.json"):
        file_of(tmp_path, FORMATS[ending](TRACE), f"{name}.{ending}")
    file_of(tmp_path, FORMATS[ending](b'{"other": 5}'), f"other.json.{ending}")
    file_of(tmp_path, FORMATS[ending](TRACE)[:4], f"damaged.json.{ending}")
    found = scan(tmp_path).recordings
    assert sorted(each.source for each in found) == [f"a.pt.trace.json.{ending}", f"b.json.{ending}"]
    assert diagnose(found[0].path).health.status == "incomplete"


@pytest.mark.parametrize(("ending", "package"), [("zst", "zstandard"), ("lz4", "lz4.frame")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, ending, package):
    monkeypatch.setitem(sys.modules, package, None)
    path = file_of(tmp_path, FORMATS[ending](TRACE), f"a.pt.trace.json.{ending}")
    with pytest.raises(Unreadable, match=rf"package {package.partition('.')[0]} is not installed\. Install it"):
        list(Blocks(path))
    assert "is not installed" in str(diagnose(path))
    assert len(scan(tmp_path).recordings) == 1
