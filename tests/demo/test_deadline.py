"""No variant starts that would exceed the time limit."""

import pytest

from demo import deadline


def test_work_goes_on_while_the_longest_part_so_far_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(deadline.time, "monotonic", lambda: now[0])
    clock = deadline.Deadline(minutes=10)
    near = []
    for at in (0, 120, 240, 500):  # parts of 120, 120 and 260 s; after 500 s another 260 would end beyond 600
        now[0] = at
        near.append(clock.is_near())
    assert near == [False, False, False, True]


def test_without_minutes_there_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline.time, "monotonic", lambda: 1e9)
    assert not deadline.Deadline(None).is_near()
