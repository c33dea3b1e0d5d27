"""Tests of event files: recognised by name, ours by the first record that our monitor writes.

Our event files are read incrementally while they grow.
"""

from pathlib import Path

from helpers.telemetry_files import NAME, context, event, scalar, write
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.sources.logdir import scan
from tb_bottleneck.sources.telemetry.event_files import is_event_file
from tb_bottleneck.sources.telemetry.telemetry_file import SeriesFile


def test_only_event_files_with_telemetry_are_recordings(tmp_path: Path) -> None:
    ours = write(tmp_path / "run" / "monitor" / NAME, [context({"cores": 4}), Packet(schema=1, sequence=0)])
    with open(tmp_path / "run" / NAME, "wb") as file:
        RecordWriter(file).write(scalar("loss", 1.0))
    (found,) = scan(tmp_path).recordings
    assert (found.path, found.run, found.is_telemetry) == (str(ours), "run/monitor", True)


def test_a_trace_is_no_event_file_whatever_it_is_called() -> None:
    assert is_event_file("/x/events.out.tfevents.1.host")
    assert not is_event_file("/x/tfevents.pt.trace.json")
    assert not is_event_file("/x/tfevents.pt.trace.json.gz")


def packets(*numbers: int) -> list[Packet]:
    return [Packet(schema=1, sequence=number) for number in numbers]


def test_a_growing_file_gives_only_what_is_new(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, [context({"cores": 4}), *packets(0, 1)])
    file = SeriesFile(str(path))
    first = file.read()
    assert [type(message).__name__ for message in first.messages] == ["RunContext", "Packet", "Packet"]
    assert file.read().messages == ()
    write(path, packets(2))
    piece = file.read()
    assert [message.sequence for message in piece.messages] == [2]  # type: ignore[union-attr]
    assert (piece.restarted, piece.more) == (False, False)


def test_a_long_file_is_read_in_pieces(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, packets(*range(50)))
    file = SeriesFile(str(path))
    pieces = [file.read(at_most=1000)]
    while pieces[-1].more:
        pieces.append(file.read(at_most=1000))
    assert len(pieces) > 3
    assert [message.sequence for piece in pieces for message in piece.messages] == list(range(50))  # type: ignore[union-attr]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, packets(0, 1, 2, 3))
    file = SeriesFile(str(path))
    file.read()
    path.unlink()
    write(path, packets(0))
    piece = file.read()
    assert piece.restarted
    assert [message.sequence for message in piece.messages] == [0]  # type: ignore[union-attr]


def test_other_messages_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, packets(0))
    with open(path, "ab") as opened:
        writer = RecordWriter(opened)
        writer.write(event("tb_bottleneck/telemetry", b"\xff\xff\xff"))
        writer.write(b"not an event, but tb_bottleneck/telemetry is in it")
        writer.write(scalar("tb_bottleneck/telemetry", 3.0))
    file = SeriesFile(str(path))
    assert len(file.read().messages) == 1
    assert file.dropped == {"not_understood": 3}
