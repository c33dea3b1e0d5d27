"""An optimizer that loops, fused; on a simulated training whose optimizer launches many kernels."""

from drawn_worlds import columns, cured, drawn_world
from simulate.workload import launch_bound
from simulated_worlds import world_of

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.optimizer import SCENARIO


def test_the_optimizers_dispatching_goes_and_its_kernels_stay():
    workload = launch_bound(5).but(layers=6, optimizer_kernels=150, loader="")
    world = world_of(workload)
    windows = {case: SCENARIO.cure(world, case).window() for case in Case}
    assert windows[Case.HIGH] <= windows[Case.EXPECTED] < windows[Case.LOW] < world.window()
    assert SCENARIO.cure(world, Case.EXPECTED).items.length.sum() == world.items.length.sum()


def test_a_training_without_an_optimizer_row_gains_nothing():
    world = drawn_world("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        gpu     .###.......###......
    """)
    assert cured(world, SCENARIO) == columns(world)
