"""The reader parses text a bounded number of times, whatever the file contains: counted, not timed."""

import json
import os

import pytest

from tb_bottleneck.base.errors import NotATrace
from tb_bottleneck.sources import kineto
from tb_bottleneck.sources.blocks import Bounds
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.trace.trace import load

BLOCK = 1 << 12
BOUNDS = Bounds(block=BLOCK, event=64 * BLOCK, malformed=1000)
SOUND = json.dumps({"ph": "X", "cat": "cpu_op", "name": "sound", "ts": 1, "dur": 1})
OPEN_LIST = '{"ph": "X", "cat": "cpu_op", "name": "open", "ts": 1, "dur": 1, "args": {"k": ['


@pytest.fixture
def parsed(monkeypatch):
    """The lengths of the texts that the lenient reader gets."""
    lengths = []
    original = kineto.LenientReader.read

    def read(self, text, following):
        lengths.append(len(text))
        return original(self, text, following)

    monkeypatch.setattr(kineto.LenientReader, "read", read)
    return lengths


def names(path):
    os.utime(path, (1e9, 1e9))  # it is not being written any more
    reader = KinetoReader(str(path), bounds=BOUNDS)
    return [event.name for batch in reader.batches() for event in batch], reader


def test_an_unclosed_list_of_events_is_not_parsed_with_each_block(tmp_path, parsed):
    path = tmp_path / "open.json"
    path.write_text('{"traceEvents": [' + OPEN_LIST + '{"ph": "i"},' * 20_000)
    names(path)
    assert sum(parsed) < 3 * path.stat().st_size


def test_a_large_event_with_objects_like_events_is_read_once_it_ends(tmp_path, parsed):
    path = tmp_path / "large.json"
    inner = ",".join(['{"name": "inner"}'] * 3_000)
    path.write_text('{"traceEvents": [' + ",".join([SOUND, OPEN_LIST + inner + "]}}", SOUND, SOUND]) + "]}")
    assert names(path)[0] == ["sound", "open", "sound", "sound"]
    assert sum(parsed) < 6 * path.stat().st_size


def test_events_after_an_unclosed_list_are_read(tmp_path):
    path = tmp_path / "after.json"
    text = OPEN_LIST + '{"ph": "i"},' * 30_000 + SOUND + "," + SOUND
    path.write_text('{"traceEvents": [' + text + "]}")
    read, reader = names(path)
    assert read.count("sound") == 2
    assert reader.lost["too large"] == 1


def test_a_file_with_mostly_broken_events_is_refused(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"traceEvents": [' + ",".join([SOUND, *['{"ph": 1}'] * 5_000]) + "]}")
    with pytest.raises(NotATrace, match="Most events"):
        names(path)
    assert load(str(path)).lost["malformed"] == 5_000  # fewer than the default limit
