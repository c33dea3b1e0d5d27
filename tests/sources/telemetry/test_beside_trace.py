"""Steps in which the device did not hold the host back, from the telemetry beside a trace."""

from pathlib import Path

import pytest
from helpers.telemetry_files import NAME, write

from tb_bottleneck.schema.telemetry_pb2 import Packet, Series, StepColumn, StepRows
from tb_bottleneck.sources.telemetry.beside_trace import RunBeside, run_beside

MS = 1e6
# The first step starts the device. Two steps fill its queue at the start, and two after the recorded ones.
RUN = [70.0, 14.0, 15.0, 25.0, *[38.0] * 8, *[-60.0] * 3, 16.0, 17.0, *[38.0] * 8]


def trace_beside(folder: Path, steps: list[float], name: str = NAME) -> str:
    """Writes telemetry with these steps in ms, negative ones recorded by a profiler; returns the path of the trace."""
    rows = StepRows(
        number=range(len(steps)),
        end_unix_ns=[1.7e18 + number * 1e8 for number in range(len(steps))],
        wall_ns=[abs(step) * MS for step in steps],
        columns=[
            StepColumn(name="profiled", values=[float(step < 0) for step in steps]),
            StepColumn(name="backward", values=[abs(step) * MS / 2 for step in steps]),
        ],
    )
    write(folder / name, [Packet(sequence=0, steps=rows)])
    return str(folder / "rank0.pt.trace.json.gz")


def test_steps_after_a_start_and_after_a_recording_are_those_of_the_host(tmp_path: Path) -> None:
    found = run_beside(trace_beside(tmp_path, RUN))
    assert [pace / MS for pace in found.host_pace] == [14.0, 15.0, 16.0, 17.0]
    assert found.host_phases == {"backward": 7.75 * MS, "optimizer": 0.0}


@pytest.mark.parametrize(
    "steps",
    [
        [70.0, *[38.0] * 20],  # the host limits all steps
        [70.0, 14.0, *[38.0] * 20],  # one step shows little
        [70.0, 14.0, 15.0, 38.0],  # too few steps
        [-60.0] * 20,  # all of them recorded
        [],
    ],
)
def test_other_runs_show_no_pace(tmp_path: Path, steps: list[float]) -> None:
    found = run_beside(trace_beside(tmp_path, steps))
    assert (found.host_pace, dict(found.host_phases)) == ((), {})


def test_a_damaged_row_costs_nothing(tmp_path: Path) -> None:
    rows = StepRows(wall_ns=[70 * MS, float("nan"), -5.0], columns=[StepColumn(name="profiled", values=[1.0])])
    write(tmp_path / NAME, [Packet(sequence=0, steps=rows)] * 5)
    assert run_beside(str(tmp_path / "a.pt.trace.json")).host_pace == ()


def test_telemetry_of_several_processes_is_not_told_apart(tmp_path: Path) -> None:
    trace_beside(tmp_path, RUN, "events.out.tfevents.1.other")
    assert run_beside(trace_beside(tmp_path, RUN)).host_pace == ()


def test_the_most_memory_of_the_device_and_of_torch_is_read(tmp_path: Path) -> None:
    used = [Series(name="memory_used", device=gpu, values=values) for gpu, values in (("a", [3.0, 5.0]), ("b", [4.0]))]
    steps = StepRows(columns=[StepColumn(name="memory_reserved", values=[float("nan"), 2.0, 1.0])])
    write(tmp_path / NAME, [Packet(sequence=0, series=used, steps=steps)])
    assert run_beside(str(tmp_path / "a.pt.trace.json")).memory == {"memory_used": 5.0, "memory_reserved": 2.0}


def test_without_telemetry_and_at_a_url_there_is_none(tmp_path: Path) -> None:
    assert run_beside(str(tmp_path / "nowhere" / "a.json")) == run_beside("s3://bucket/a.json") == RunBeside()
