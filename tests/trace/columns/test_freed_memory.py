"""Memory that was freed is the system's again."""

import sys
from pathlib import Path

import pytest

from tb_bottleneck.trace.columns.packed_column import return_freed_memory


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="only there can the C library be told to return memory")
def test_memory_between_used_parts_is_returned():
    """A used part lies after each freed one, so nothing is returned by itself."""
    parts = [bytearray(65_536) for _ in range(2_000)]
    del parts[::2]
    before = resident_pages()
    return_freed_memory()
    assert resident_pages() < before - 1_000 * 65_536 // 4_096 // 2


def test_it_does_nothing_where_it_cannot(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    return_freed_memory()
