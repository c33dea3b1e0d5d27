"""Event files are recognised by their names, and ours by the first record that our monitor writes."""

from pathlib import Path

from helpers.telemetry_files import NAME, context, scalar, write
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.sources.logdir import scan
from tb_bottleneck.sources.telemetry.telemetry_file import is_event_file


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
