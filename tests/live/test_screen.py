"""The lines of `watch`: plain words, and only the jobs that changed."""

from pathlib import Path
from typing import Any

from live.beats import NOW_S, beat, still, write

from tb_bottleneck.live.screen import ChangedLines, lines
from tb_bottleneck.live.state import LiveJobs, LiveState


def states(logdir: Path, *beats: dict[str, Any], process: str = "there") -> list[LiveState]:
    return LiveJobs(str(write(logdir, *beats)), clock=lambda: NOW_S, status=lambda _: process).read(over=True)


def test_a_healthy_job_is_ok_and_a_new_one_is_being_measured(tmp_path: Path) -> None:
    (line,) = lines(states(tmp_path / "a", beat(world_size=1)))
    assert ", ok: " in line
    (line,) = lines(states(tmp_path / "b", beat(world_size=1, recent={"wall": 0.0}, step=0)))
    assert line.endswith(": measuring")


def test_only_changes_are_printed(tmp_path: Path) -> None:
    changed = ChangedLines()
    assert len(changed.of(states(tmp_path, beat(0), beat(1)))) == 1
    assert changed.of(states(tmp_path, beat(0, step=500), beat(1, step=500))) == [], "other figures are no change"
    (line,) = changed.of(states(tmp_path, still(30, 0, "data", 7), still(31, 1, "backward", 9)))
    assert "critical" in line


def test_a_job_that_was_over_at_the_first_look_is_left_out(tmp_path: Path) -> None:
    ended = [beat(rank, state="ended") for rank in (0, 1)]
    assert ChangedLines().of(states(tmp_path, *ended)) == []
