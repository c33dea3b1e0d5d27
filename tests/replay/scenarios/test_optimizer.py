"""A looping optimizer, fused, on a simulated training with many optimizer kernels."""

from helpers.drawn_graphs import after_fix, columns, drawn_graph
from helpers.simulated_graphs import simulated_graph
from simulate.workload import launch_bound

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.launches import FUSED_OPTIMIZER


def test_the_optimizers_dispatching_goes_and_its_kernels_stay():
    workload = launch_bound(5).but(layers=6, optimizer_kernels=150, loader="")
    graph = simulated_graph(workload)
    windows = {estimate: FUSED_OPTIMIZER.apply(graph, estimate).window() for estimate in Estimate}
    assert windows[Estimate.HIGH] <= windows[Estimate.EXPECTED] < windows[Estimate.LOW] < graph.window()
    assert FUSED_OPTIMIZER.apply(graph, Estimate.EXPECTED).items.length.sum() == graph.items.length.sum()


def test_a_training_without_an_optimizer_row_gains_nothing():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        gpu     .###.......###......
    """)
    assert after_fix(graph, FUSED_OPTIMIZER) == columns(graph)
