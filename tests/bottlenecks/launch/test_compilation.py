"""Compilation already in use."""

import pytest
from simulate.examine import examine, measured
from simulate.problems import PROBLEMS
from simulate.workload import healthy, launch_bound

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.launch.compilation import compiled_kernels, graph_breaks, graph_launches

COMPILED = PROBLEMS["a compiled model without graphs"].make(1)


def test_compiled_kernels_are_recognised_by_their_names():
    assert compiled_kernels(measured(COMPILED)).value == pytest.approx(0.7, abs=0.1)
    assert compiled_kernels(measured(COMPILED.but(stream_name="void at::native::x", product_name="sgemm"))).value == 0


def test_no_graph_is_predicted_across_values_that_the_host_reads():
    assert isinstance(graph_breaks(measured(healthy(1))), Missing)
    reading = measured(PROBLEMS["scalar reads in the forward pass"].make(1))
    found = graph_breaks(reading)
    assert found.value > 5
    shown = [row.label for row in examine(launch_bound(1).but(read_every_layers=4)).report.findings[0].evidence]
    assert "Values read from the device, per step" in shown


def test_a_graph_is_one_launch_of_many_kernels():
    assert graph_launches(measured(healthy(1).but(graph=True))).value == 1
    assert graph_launches(measured(healthy(1))).value == 0
