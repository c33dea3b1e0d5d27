"""Who owns the time: each test draws a training and says where its time went."""

import pytest
from draw import drawn_trace

from tb_bottleneck.attribution.account import account_of
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.trace.steps import find_steps


def shares(drawing: str, unit_us: float = 1000.0, **header) -> dict[str, float]:
    trace = drawn_trace(drawing, unit_us, **header)
    steps = find_steps(trace)
    assert steps is not None
    account = Recording(trace, steps).account
    assert sum(account.ns.values()) == account.window
    return {regime: account.share(regime) for regime in REGIMES if account.share(regime) > 0.01}


def about(**expected: float):
    return pytest.approx(expected, abs=0.012)


def test_loader_in_front_of_an_idle_device_is_input():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  ####......####......
        gpu     ....######....######
    """)
    assert found == about(input=0.4, compute=0.6)


def test_loader_behind_a_busy_device_costs_nothing():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        loader  .####......####.....
        launch  |.........|.........
        gpu     .ccccccccccddddddddd
    """)
    assert "input" not in found
    assert found["compute"] > 0.9


def test_dispatching_in_front_of_an_idle_device_is_launch():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        op      #####.....#####.....
        launch  ....|.........|.....
        gpu     .....aaaaa.....bbbbb
    """)
    assert found == about(launch=0.5, compute=0.5)


def test_python_without_any_operator_is_host():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        gpu     ......aaaa......bbbb
    """)
    assert found == about(host=0.6, compute=0.4)


def test_short_pauses_between_operators_belong_to_dispatching():
    found = shares(
        """
        step    aaaaaaaaaabbbbbbbbbb
        op      #.#.#.....#.#.#.....
        launch  ....|.........|.....
        gpu     .....aaaaa.....bbbbb
    """,
        unit_us=100.0,
    )
    assert found == about(launch=0.5, compute=0.5)


def test_a_checkpoint_is_an_interruption():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        save    .....#####..........
        launch  |.........|.........
        gpu     .aaaa......bbbbbbbbb
    """)
    assert found["interruption"] == pytest.approx(0.25, abs=0.012)


def test_driver_allocations_in_front_of_an_idle_device_are_the_allocators():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        malloc  .###.......###......
        launch  ....|.........|.....
        gpu     .....aaaaa.....bbbbb
    """)
    assert found["allocator"] == pytest.approx(0.3, abs=0.012)


def test_a_wait_over_a_busy_device_costs_nothing():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ||........||........
        sync    ..#######...#######.
        gpu     .aaaabbbbbcccccddddd
    """)
    assert "sync" not in found
    assert found["compute"] > 0.9


def test_a_wait_that_drains_the_queue_owns_the_dispatching_behind_it():
    """Each wait of 6 ms returns with the queue empty; the host then needs 4 ms to launch again."""
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        sync    .######....######...
        op      .......###.......###
        gpu     .aaaaaa....bbbbbb...
    """)
    assert found["sync"] == pytest.approx(0.35, abs=0.012)  # 4 ms of the first step, 3 ms of the second


def test_a_wait_costs_no_more_than_it_lasted():
    """A wait of 1 ms cannot be blamed for 7 ms of dispatching: a launch-bound loop stays launch-bound."""
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        op      ..#######...#######.
        sync    .#.........#........
        launch  .........|.........|
        gpu     ##........##........
    """)
    assert found["sync"] < 0.12
    assert found["launch"] > 0.5


def test_a_wait_in_front_of_an_interruption_is_not_to_blame_for_the_dispatching_behind_it():
    """Without the wait of 1 ms the checkpoint would begin 1 ms earlier, and so would all that follows: nothing is won
    by the dispatching, so it stays what it is."""
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        sync    .#.........#........
        save    ...####......####...
        op      .......###.......###
        gpu     ##........##........
    """)
    assert "sync" not in found
    assert found["interruption"] == pytest.approx(0.4, abs=0.012)


def test_a_device_that_somebody_else_holds_is_not_launch_overhead():
    """The launches have returned after 1 ms; nothing recorded says why the kernels begin 4 ms later."""
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ....|.........|.....
        op      #####.....#####.....
        gpu     .........a.........b
    """)
    assert found == about(launch=0.5, unexplained=0.4, compute=0.1)


def test_only_exposed_collectives_count():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        gpu     aaaaaaa...bbbbbbb...
        nccl    .....nnnnn.....mmmmm
    """)
    assert found == about(communication=0.3, compute=0.7)


def test_copies_beside_kernels_are_free_and_exposed_ones_are_not():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        h2d     ##..##....##..##....
        gpu     ..aaaaaaaa..bbbbbbbb
    """)
    assert found == about(transfer=0.2, compute=0.8)


def test_kernels_of_one_block_are_underfilled_and_streaming_ones_memory():
    found = shares("""
        step    aaaaaaaaaabbbbbbbbbb
        small   ssss......tttt......
        stream  ....uuuuuu....vvvvvv
    """)
    assert found == about(underfilled=0.4, memory=0.6)


def test_device_work_is_not_clipped_at_the_end_of_a_host_step():
    """The host is done with both steps after 8 ms, the device works for 20: nothing of it is lost."""
    trace = drawn_trace(
        """
        step    aaaabbbb............
        launch  ||..................
        gpu     .aaaaaaaaaabbbbbbbbb
    """,
        1000.0,
    )
    steps = find_steps(trace)
    assert steps.end == 20_000_000
    assert Recording(trace, steps).account.share("compute") == pytest.approx(0.95, abs=0.01)


def test_an_account_that_does_not_sum_is_refused():
    with pytest.raises(ValueError, match="sum"):
        account_of(10, {"input": 9})
