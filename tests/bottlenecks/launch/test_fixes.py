"""Tests of the scenarios of launches: graphs, merged kernels and larger batches.

Drawn timelines are worked out by hand; times are in columns, for the recorded samples.
"""

import pytest
from helpers import draw
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.bottlenecks.launch.fixes import COMPILED_DISPATCH_SHARE, GRAPH, GRAPH_DISPATCH_SHARE
from tb_bottleneck.bottlenecks.memory.fixes import FUSION, MERGED_REMAINING
from tb_bottleneck.bottlenecks.underfilled.fixes import LARGER_BATCH
from tb_bottleneck.replay.modified_graph import Estimate

LATE = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ####################
    launch  ..|..|..|...|..|..|.
    gpu     ...#..#..#...#..#..#
"""


def test_the_host_dispatches_in_a_twentieth_of_its_time():
    """Host time shrinks from twenty columns to one; six kernels of a column each are the limit."""
    graph = drawn_graph(LATE)
    assert columns(graph) == 20
    assert after_fix(graph, GRAPH) == pytest.approx(6, abs=6 * 0.02 + 20 * GRAPH_DISPATCH_SHARE)


def test_at_worst_dispatching_is_halved():
    """The last launch comes at column 9 instead of 18; its kernel begins a column later, as recorded, and takes one."""
    assert after_fix(drawn_graph(LATE), GRAPH, Estimate.LOW) == 18 * COMPILED_DISPATCH_SHARE + 1 + 1


def test_a_busy_device_is_the_limit():
    """The device works in eighteen of twenty columns."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||.......|||.......
        gpu     .aaabbbcccaaabbbccc.
    """)
    assert after_fix(graph, GRAPH) == pytest.approx(18, abs=0.1)


# The host is far ahead: all is launched in eight columns.
CHAINS = """
    step    aaaabbbb................
    launch  ||||||||................
    gpu     .###........###.........
    stream  ....aaabbbcc...aaabbbcc.
"""


def kernel_time(graph):
    return graph.items.length.sum() / 100_000


def test_of_a_chain_its_longest_kernel_stays_and_a_share_of_the_others():
    """Of three kernels of three, three and two columns, one of three stays; products stay as they are."""
    fixed = FUSION.apply(drawn_graph(CHAINS), Estimate.EXPECTED)
    assert kernel_time(fixed) == pytest.approx(2 * (3 + 3 + 5 * MERGED_REMAINING), abs=0.01)


def test_at_worst_half_of_that_is_saved_and_at_best_the_chains_join_the_products():
    graph = drawn_graph(CHAINS)
    high, expected, low = (
        kernel_time(FUSION.apply(graph, estimate)) for estimate in (Estimate.HIGH, Estimate.EXPECTED, Estimate.LOW)
    )
    assert low == pytest.approx((kernel_time(graph) + expected) / 2, abs=0.01)
    assert high < expected < low


@pytest.mark.parametrize(
    ("kernel", "fuses"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>", True),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)", True),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>", True),
        ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", True),
        ("triton_poi_fused_add_relu_3", False),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", False),
        ("void at_cuda_detail::cub::DeviceSelectSweepKernel<at_cuda_detail::cub::DispatchSelectIf>", False),
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true>", False),
    ],
)
def test_what_a_compiler_merges(monkeypatch, kernel, fuses):
    category, _, stream, grid = draw.DEVICE_ROWS["stream"]
    monkeypatch.setitem(draw.DEVICE_ROWS, "stream", (category, kernel, stream, grid))
    graph = drawn_graph(CHAINS)
    assert (kernel_time(FUSION.apply(graph, Estimate.EXPECTED)) < kernel_time(graph)) == fuses


def test_kernels_of_the_optimizer_stay(monkeypatch):
    """Compiling the model does not compile its optimizer."""
    monkeypatch.setitem(draw.HOST_ROWS, "op", ("user_annotation", "Optimizer.step#Adam.step"))
    graph = drawn_graph(CHAINS.replace("    launch", "    op      ########................\n    launch"))
    assert kernel_time(FUSION.apply(graph, Estimate.EXPECTED)) == kernel_time(graph)


def test_a_product_between_two_pointwise_kernels_keeps_them_apart():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||.......|||.......
        gpu     ....###.......###...
        stream  .aaa...bbbaaa....bbb
    """)
    assert after_fix(graph, FUSION) >= columns(graph) - 3, "only the last and the first of two steps are neighbours"


def test_kernels_too_small_to_fill_the_device_take_no_longer_for_twice_the_samples():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        small   .#########.#########
    """)
    assert after_fix(graph, LARGER_BATCH) == columns(graph) / 2


def test_kernels_that_fill_the_device_gain_nothing():
    graph = drawn_graph("""
        step    ab..................
        launch  ||..................
        gpu     .aaaaaaaaabbbbbbbbb.
    """)
    assert after_fix(graph, LARGER_BATCH) == pytest.approx(columns(graph), rel=0.06)
