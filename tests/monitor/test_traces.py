"""Traces of a real training: the first after warm-up, on request, and beside the training's own profiler."""

from pathlib import Path

import pytest
import torch
from monitor.quick_monitor import quick
from monitor.training import STEPS, Training
from monitor.written import read

from tb_bottleneck.monitor import session

pytestmark = pytest.mark.usefixtures("torch_is_left_as_it_was")


def test_a_trace_with_the_unprofiled_step_time_beside_it(tmp_path: Path, whole_windows: None) -> None:
    import gzip
    import json

    with quick(tmp_path, captures=1):
        Training().run(epochs=6)
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    context = json.loads(trace["tb_bottleneck"]) if isinstance(trace["tb_bottleneck"], str) else trace["tb_bottleneck"]
    assert context["context"]["unprofiled_step_ns"] > 0
    assert (trace["record_shapes"], trace["with_stack"]) == (1, 1)
    names = {event["name"] for event in trace["traceEvents"]}
    assert sum(name.startswith("ProfilerStep#") for name in names) == 9, "six with stacks and three without"
    assert any(name.startswith("enumerate(DataLoader)") for name in names)
    written = read(tmp_path)
    assert {"capture_started", "capture_ended"} <= set(written.notes)
    assert sum(written.column("profiled")) >= 6
    assert not list(tmp_path.rglob("*.tmp")) + list(tmp_path.rglob("*.unpacked"))


def test_a_trace_on_request(tmp_path: Path) -> None:
    from tb_bottleneck.monitor.writer.run_directory import live_directories, request_capture

    training = Training()
    with quick(tmp_path):
        training.run()
        (directory,) = live_directories(tmp_path)
        assert request_capture(directory)
        for _ in range(2000):
            training.run()
            if list(directory.glob("*.pt.trace.json.gz")):
                break
    assert len(list(directory.glob("*.pt.trace.json.gz"))) == 1


@pytest.mark.parametrize("made_before", [True, False])
def test_the_trainings_own_profiler_goes_first(tmp_path: Path, made_before: bool) -> None:
    """Its schedule begins during our recording: ours is dropped, and the training's is complete.

    torch crashed with a segmentation fault while only profilers created after the monitor's start were detected.
    """
    training, events = Training(), []

    def theirs() -> torch.profiler.profile:
        return torch.profiler.profile(
            schedule=torch.profiler.schedule(skip_first=32, wait=0, warmup=1, active=2, repeat=1),
            on_trace_ready=lambda profiler: events.append(len(profiler.events())),
        )

    before = theirs()
    with quick(tmp_path, captures=1), before if made_before else theirs() as profiler:
        for _ in range(6):
            for batch in training.loader:
                training.step(batch)
                profiler.step()
    assert events
    assert events[0] > 0
    assert not list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert "capture_dropped" in read(tmp_path).notes


def test_ours_comes_after_the_trainings_own(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path, captures=1):
        with torch.profiler.profile():
            training.run(epochs=4)
        assert not list(tmp_path.rglob("*.unpacked"))
        training.run(epochs=5)
    assert len(list(tmp_path.rglob("*.pt.trace.json.gz"))) == 1
    assert sum(read(tmp_path).column("profiled")) >= 4 * STEPS + 6


@pytest.mark.parametrize("known_at_start", [True, False])
def test_a_monitor_that_starts_before_the_process_group_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, known_at_start: bool
) -> None:
    """It cannot know its rank, and the ranks of the job are taken for trainings of their own."""
    groups = [(1, 2) if known_at_start else None, (1, 2)]
    monkeypatch.setattr(session, "_process_group", lambda: groups.pop(0) if len(groups) > 1 else groups[0])
    with quick(tmp_path, captures=1):
        Training().run(epochs=6)
    assert ("before init_process_group" in caplog.text) != known_at_start
    (directory,) = (tmp_path / "tb_bottleneck").iterdir()
    assert ("_rank1_" in directory.name) == known_at_start
