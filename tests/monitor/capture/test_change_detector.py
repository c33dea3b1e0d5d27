"""A lasting change of the run is detected."""

from tb_bottleneck.monitor.capture.change_detector import ChangeDetector
from tb_bottleneck.monitor.steps.row_queue import StepRow


def rows(steps: int, step_ms: float, loader: float | None = 0.1, **figures: float) -> list[StepRow]:
    result = {} if loader is None else {"loader_wait": loader * step_ms * 1e6}
    return [StepRow(index, 0, int(step_ms * 1e6), {**result, **figures}) for index in range(steps)]


WINDOW = 30  # steps of 100 ms


def test_a_steady_run_does_not_change() -> None:
    changes = ChangeDetector()
    assert [changes.add(rows(WINDOW, 100)) for _ in range(20)] == [None] * 20


def test_a_loader_that_becomes_slow_is_noticed_in_the_second_window() -> None:
    changes = ChangeDetector()
    assert changes.add(rows(WINDOW, 100)) is None
    assert changes.add(rows(WINDOW, 120, loader=0.3)) is None
    assert changes.add(rows(WINDOW, 120, loader=0.3)) == "the loader's share of the step rose"


def test_steps_that_become_longer_or_shorter_are_noticed() -> None:
    for step_ms, result in ((140.0, "steps became longer"), (70.0, "steps became shorter")):
        changes = ChangeDetector()
        changes.add(rows(WINDOW, 100, loader=None))
        assert changes.add(rows(4 * WINDOW, step_ms, loader=None)) == result


def test_one_odd_window_is_no_change() -> None:
    changes = ChangeDetector()
    for step_ms in (100, 100, 300, 100, 100, 300, 100):
        assert changes.add(rows(3_000 // step_ms + 1, step_ms)) is None


def test_profiled_steps_and_evaluation_are_no_change() -> None:
    changes = ChangeDetector()
    changes.add(rows(WINDOW, 100))
    assert changes.add(rows(10 * WINDOW, 300, profiled=1.0)) is None
    assert changes.add(rows(WINDOW, 400, loader=0.025, evaluation=300e6)) is None
    assert changes.add(rows(WINDOW, 400, loader=0.025, evaluation=300e6)) is None


def test_after_a_trace_the_new_way_is_the_usual() -> None:
    changes = ChangeDetector()
    changes.add(rows(WINDOW, 100))
    assert changes.add(rows(2 * WINDOW, 200)) is not None
    changes.reset()
    assert [changes.add(rows(WINDOW, 200)) for _ in range(5)] == [None] * 5
