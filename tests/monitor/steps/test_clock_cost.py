"""The clock's own cost is told, and is small."""

from tb_bottleneck.monitor.steps.clock_cost import cost_of_a_step


def test_the_clock_knows_its_own_cost() -> None:
    assert 100 < cost_of_a_step() < 10_000_000
