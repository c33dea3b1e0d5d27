"""Rows on their way to the file: no thread waits for one, and a fast loop does not fill the disk."""

from tb_bottleneck.monitor.steps.row_queue import RowQueue, RowRateLimiter, StepRow


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
    assert limiter.merged == 0


def test_a_fast_loop_keeps_its_first_steps_then_writes_25_rows_a_second() -> None:
    limiter = RowRateLimiter()
    assert len(limiter.filter(rows(1000, 1))) == 1000
    kept = limiter.filter(rows(10_000, 1, first=1000))
    assert 240 <= len(kept) <= 300, "10 s of them"
    assert sum(row.steps for row in kept) == 10_000
    assert kept[-1].number == 10_999
    assert limiter.merged == sum(row.steps for row in kept if row.steps > 1)


def test_a_long_step_keeps_its_own_row() -> None:
    limiter = RowRateLimiter(burst=1)
    limiter.filter(rows(30, 1))
    kept = limiter.filter([*rows(10, 1, 3000), StepRow(3010, 0, 9_000_000), *rows(10, 1, 3011)])
    assert [(row.number, row.steps) for row in kept] == [(3009, 10), (3010, 1), (3020, 10)]


def test_many_long_steps_do_not_fill_the_disk() -> None:
    limiter = RowRateLimiter()
    loop = [StepRow(number, 0, 3_000_000 if number % 4 == 0 else 1_000_000) for number in range(20_000)]
    kept = limiter.filter(loop)
    assert sum(row.steps for row in kept) == len(loop)
    assert len(kept) < 1000 + 2 * 1000 + 3 * 25 * 30, "30 s of them"


def test_merged_rows_keep_the_totals() -> None:
    limiter = RowRateLimiter(burst=1)
    steps = [StepRow(number, 0, 1_000_000, {"loader_wait": float(number)}) for number in range(9)]
    steps[4].figures["samples"] = 8.0  # of the others, it is not known
    steps[5].figures["device_allocations"] = 16.0  # since the last value
    first, row = limiter.filter(steps)
    assert (first.steps, row.steps, row.number, row.wall_ns) == (1, 8, 8, 1_000_000)
    assert row.figures == {"loader_wait": 4.5, "samples": 8.0, "device_allocations": 2.0}


def test_profiled_steps_are_merged_with_each_other_only() -> None:
    limiter = RowRateLimiter(burst=1)
    steps = rows(12, 1)
    for step in steps[4:8]:
        step.figures["profiled"] = 1.0
    kept = limiter.filter(steps)
    assert [(row.steps, row.is_profiled) for row in kept] == [(1, False), (3, False), (4, True), (4, False)]


def test_working_time_leaves_evaluation_out() -> None:
    assert StepRow(0, 0, 100, {"evaluation": 60.0}).working_ns == 40
    assert StepRow(0, 0, 100).working_ns == 100
