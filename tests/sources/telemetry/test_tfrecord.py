"""Records of event files: written by TensorBoard's writer; damage loses only the damaged record."""

import os
from pathlib import Path

import pytest
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c as oracle
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.sources.telemetry import tfrecord
from tb_bottleneck.sources.telemetry.tfrecord import FOOTER, HEADER, Records, masked_crc32c


def written(path: Path, *contents: bytes) -> Path:
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for content in contents:
            writer.write(content)
        writer.flush()
    return path


def read(records: Records) -> list[bytes]:
    return [body[:-FOOTER] for body in records.read() if records.is_valid(body)]


@pytest.mark.parametrize("length", [0, 1, 8, 63, 64, 65, 127, 128, 1000, 20_000])
def test_the_checksum_is_the_one_of_event_files(length: int) -> None:
    data = os.urandom(length)
    assert masked_crc32c(data) == oracle(data)


def test_added_records_are_returned_once(tmp_path: Path) -> None:
    path = written(tmp_path / "events", b"one", b"two")
    records = Records(str(path))
    assert read(records) == [b"one", b"two"]
    assert read(records) == []
    written(path, b"three")
    assert read(records) == [b"three"]
    assert not records.dropped


def test_half_a_record_waits_for_its_other_half(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", b"one", b"a longer one").read_bytes()
    path = tmp_path / "events"
    records = Records(str(path))
    path.write_bytes(whole[:-7])
    assert read(records) == [b"one"]
    path.write_bytes(whole)
    assert read(records) == [b"a longer one"]


def test_damage_costs_the_records_it_hits_and_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "events", b"A" * 40, b"B" * 40, b"C" * 40, b"D" * 40)
    size = HEADER + 40 + FOOTER
    data = bytearray(path.read_bytes())
    data[size + 3] ^= 0xFF  # B's length
    data[2 * size + HEADER + 5] ^= 0xFF  # C's content
    path.write_bytes(data)
    records = Records(str(path))
    assert read(records) == [b"A" * 40, b"D" * 40]
    assert records.dropped == {"damaged": 2}


def test_garbage_before_a_record_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(bytes(range(256)) * 5000)
    records = Records(str(path))
    assert read(records) == []
    written(path, b"at last")
    assert read(records) == [b"at last"]
    assert records.dropped == {"damaged": 1}


def test_a_record_that_is_too_large_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "events", b"one", b"x" * 5000, b"three")
    records = Records(str(path), largest=1000)
    assert read(records) == [b"one", b"three"]
    assert records.dropped == {"too_large": 1}


def test_a_length_that_no_file_has_is_waited_for_and_nothing_is_allocated(tmp_path: Path) -> None:
    path = written(tmp_path / "events", b"one")
    header = (1 << 62).to_bytes(8, "little")
    with open(path, "ab") as file:
        file.write(header + oracle(header).to_bytes(4, "little") + b"more")
    records = Records(str(path))
    assert read(records) == [b"one"]
    assert read(records) == []


def test_the_rest_of_a_file_with_much_damage_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "MAX_WASTED", 3 << 20)
    path = written(tmp_path / "events", b"one")
    os.truncate(path, 1 << 40)  # a hole takes no space on the disk
    records = Records(str(path))
    assert read(records) == [b"one"]
    assert (records.offset, records.dropped) == (1 << 40, {"damaged": 1})
    assert records.wasted < 5 << 20


def test_damaged_contents_count_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "MAX_WASTED", 2500)
    path = written(tmp_path / "events", *[b"x" * 1000] * 9)
    path.write_bytes(path.read_bytes().replace(b"xx", b"xy"))
    records = Records(str(path))
    assert read(records) == []
    assert records.dropped == {"damaged": 3}


def test_one_read_is_limited_in_size(tmp_path: Path) -> None:
    path = written(tmp_path / "events", *[b"y" * 1000] * 10)
    records = Records(str(path))
    assert len(list(records.read(at_most=3000))) == 3
    assert len(list(records.read())) == 7
