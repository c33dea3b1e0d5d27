"""Rows on their way to the file: no thread waits for one, and a fast loop does not fill the disk."""

from tb_bottleneck.monitor.steps.step_rows import RowQueue, RowRateLimiter, StepRow


def rows(count: int, wall_ms: float, first: int = 0) -> list[StepRow]:
    return [StepRow(first + index, 0, int(wall_ms * 1e6)) for index in range(count)]


def test_rows_come_out_in_order_and_once() -> None:
    waiting = RowQueue()
    for row in rows(3, 10):
        waiting.add(row)
    assert [row.number for row in waiting.take()] == [0, 1, 2]
    assert waiting.take() == []


def test_where_nobody_takes_them_the_oldest_are_lost() -> None:
    waiting = RowQueue(limit=5)
    for row in rows(8, 10):
        waiting.add(row)
    assert [row.number for row in waiting.take()] == [3, 4, 5, 6, 7]


def test_every_step_of_a_slow_loop_is_kept() -> None:
    limiter = RowRateLimiter()
    assert len(limiter.filter(rows(5000, 50))) == 5000
    assert limiter.left_out == 0


def test_a_fast_loop_keeps_its_first_steps_then_25_a_second() -> None:
    limiter = RowRateLimiter()
    assert len(limiter.filter(rows(1000, 1))) == 1000
    kept = limiter.filter(rows(10_000, 1, first=1000))
    assert 240 <= len(kept) <= 300, "10 s of them"
    assert limiter.left_out == 10_000 - len(kept)


def test_a_long_step_is_always_kept() -> None:
    limiter = RowRateLimiter()
    limiter.filter(rows(3000, 1))
    kept = limiter.filter([*rows(10, 1, 3000), StepRow(3010, 0, 9_000_000), *rows(10, 1, 3011)])
    assert 3010 in [row.number for row in kept]


def test_working_time_leaves_evaluation_out() -> None:
    assert StepRow(0, 0, 100, {"evaluation": 60.0}).working_ns == 40
    assert StepRow(0, 0, 100).working_ns == 100
