"""What a compiler has done already."""

import pytest
from simulate.examine import measured
from simulate.illnesses import ILLNESSES
from simulate.workload import healthy

from tb_bottleneck.measures.compiling import compiled_kernels, graph_launches

COMPILED = ILLNESSES["a compiled model without graphs"].make(1)


def test_compiled_kernels_are_told_by_their_names():
    assert compiled_kernels(measured(COMPILED)).value == pytest.approx(0.7, abs=0.1)
    assert compiled_kernels(measured(COMPILED.but(stream_name="void at::native::x", product_name="sgemm"))).value == 0


def test_a_graph_is_one_launch_of_many_kernels():
    assert graph_launches(measured(healthy(1).but(graph=True))).value == 1
    assert graph_launches(measured(healthy(1))).value == 0
