"""Floating-point operations, compared with torch's counter on real operators, and with values computed by hand."""

import json

import pytest

from tb_bottleneck.roofline.matmul import flops

torch = pytest.importorskip("torch")
counter = pytest.importorskip("torch.utils.flop_counter")


def recorded(*arguments):
    """Returns arguments as a trace records them: shapes, and the texts of other values."""
    dims = [list(value.shape) if isinstance(value, torch.Tensor) else [] for value in arguments]
    return dims, [_text(value) for value in arguments]


def _text(value):
    if value is None or isinstance(value, torch.Tensor):
        return ""
    return json.dumps(value).replace("true", "True").replace("false", "False")


def counted(operator, *arguments):
    """Returns torch's count for one operator; on the meta device, nothing is computed."""
    with counter.FlopCounterMode(display=False) as mode:
        operator(*arguments)
    return mode.get_total_flops()


def meta(*shape, dtype=None):
    return torch.empty(*shape, device="meta", dtype=dtype)


aten = torch.ops.aten
PRODUCTS = {
    "mm": (meta(3, 5), meta(5, 7)),
    "addmm": (meta(7), meta(3, 5), meta(5, 7)),
    "bmm": (meta(4, 3, 5), meta(4, 5, 7)),
    "baddbmm": (meta(4, 3, 7), meta(4, 3, 5), meta(4, 5, 7)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_agree_with_torch(name):
    arguments = PRODUCTS[name]
    assert flops(f"aten::{name}", *recorded(*arguments)) == counted(getattr(aten, name), *arguments) > 0


def test_products_by_hand():
    assert flops("aten::mm", [[3, 5], [5, 7]], ["", ""]) == 2 * 3 * 5 * 7
    assert flops("aten::addmm_", [[3, 7], [3, 5], [5, 7], [], []], ["", "", "", "1", "1"]) == 2 * 3 * 5 * 7
    assert flops("aten::_scaled_mm", [[16, 32], [32, 64], [], []], ["", "", "", ""]) == 2 * 16 * 32 * 64
    assert flops("aten::mv", [[3, 5], [5]], ["", ""]) == 2 * 3 * 5
    assert flops("aten::dot", [[5], [5]], ["", ""]) == 2 * 5
    assert flops("aten::linear", [[8, 1024, 512], [256, 512], [256]], ["", "", ""]) == 2 * 8 * 1024 * 512 * 256


# x, weight, stride, padding, dilation, transposed, output padding, groups
CONVOLUTIONS = [
    ((2, 3, 17, 19), (8, 3, 3, 5), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ((2, 3, 17, 19), (8, 3, 3, 5), [2, 3], [1, 2], [2, 1], False, [0, 0], 1),
    ((2, 6, 17, 19), (9, 2, 3, 3), [2, 1], [1, 1], [1, 3], False, [0, 0], 3),
    ((2, 8, 9, 9), (8, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 8),
    ((2, 5, 33), (4, 5, 7), [3], [2], [2], False, [0], 1),
    ((1, 2, 7, 8, 9), (4, 2, 3, 3, 3), [2, 2, 2], [1, 0, 1], [1, 1, 2], False, [0, 0, 0], 1),
    ((2, 6, 7, 9), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1),
    ((2, 6, 7, 9), (6, 4, 3, 5), [3, 2], [1, 0], [1, 2], True, [2, 1], 2),
]


@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=str)
def test_convolutions_agree_with_torch(settings):
    x, weight, *rest = settings
    arguments = (meta(x), meta(weight), None, *rest)
    assert flops("aten::convolution", *recorded(*arguments)) == counted(aten.convolution, *arguments) > 0


@pytest.mark.parametrize("mask", [[True, False, False], [False, True, True], [True, True, True], [False, False, True]])
@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=str)
def test_gradients_of_convolutions_agree_with_torch(settings, mask):
    """Torch ignores groups in the weight's gradient of a convolution: it counts `groups` times too much."""
    x, weight, *rest = settings
    groups = rest[-1]
    result = aten.convolution(meta(x), meta(weight), None, *rest)
    arguments = (result, meta(x), meta(weight), [weight[0]], *rest)
    expected = 0
    for index, wanted in enumerate(mask[:2]):
        alone = [index == 0 and wanted, index == 1 and wanted, False]
        whole = counted(aten.convolution_backward, *arguments, alone)
        expected += whole // groups if index == 1 else whole
    assert flops("aten::convolution_backward", *recorded(*arguments, mask)) == expected


def test_library_convolutions_have_their_arguments_elsewhere():
    """On a GPU, the innermost operator is the library's, with its arguments in another order."""
    expected = 2 * 4 * (31 * 31) * (16 * 3 * 3 * 3)  # 64 wide, 3 wide kernel, stride 2, no padding
    x, weight = [4, 3, 64, 64], [16, 3, 3, 3]
    for name, plain in {
        "cudnn_convolution": ["[0, 0]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"],
        "miopen_convolution": ["", "[0, 0]", "[2, 2]", "[1, 1]", "1", "False", "False"],
        "cudnn_convolution_relu": ["", "[2, 2]", "[0, 0]", "[1, 1]", "1"],
        "cudnn_convolution_add_relu": ["", "1", "", "[2, 2]", "[0, 0]", "[1, 1]", "1"],
        "_conv_depthwise2d": ["[3, 3]", "", "[2, 2]", "[0, 0]", "[1, 1]"],
        "_slow_conv2d_forward": ["[3, 3]", "", "[2]", "[0, 0]"],
    }.items():
        dims = [x, weight, *([] for _ in plain)]
        assert flops(f"aten::{name}", dims, ["", "", *plain]) == expected, name


def test_an_old_input_gradient_needs_no_settings():
    """Recorded by torch 1.9 on a V100: resnet50's second stage, 3 x 3 kernels on 56 x 56 places."""
    dims = [[], [32, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], [], [], []]
    assert flops("aten::cudnn_convolution_backward_input", dims, []) == 2 * 32 * 56 * 56 * 64 * 64 * 9
    assert flops("aten::cudnn_convolution_backward_weight", dims, []) is None
    assert flops("aten::cudnn_convolution", [[32, 64, 56, 56], [64, 64, 3, 3]], []) is None


Q, K, V = meta(2, 4, 16, 8), meta(2, 4, 24, 8), meta(2, 4, 24, 8)


def test_attention_agrees_with_torch():
    flash = (Q, K, V, 0.0, False, False)
    assert flops("aten::_scaled_dot_product_flash_attention", *recorded(*flash)) == counted(
        aten._scaled_dot_product_flash_attention, *flash
    )
    narrow = (Q, K, meta(2, 4, 24, 12), None, True, 0.0, False)
    assert flops("aten::_scaled_dot_product_efficient_attention", *recorded(*narrow)) == counted(
        aten._scaled_dot_product_efficient_attention, *narrow
    )


def test_the_gradient_of_attention_agrees_with_torch():
    rest = (meta(2, 4, 16, 8), meta(2, 4, 16), meta(0), meta(0), 16, 24, 0.0, False, meta(2), meta(2))
    arguments = (meta(2, 4, 16, 8), Q, K, V, *rest)
    assert flops("aten::_scaled_dot_product_flash_attention_backward", *recorded(*arguments)) == counted(
        aten._scaled_dot_product_flash_attention_backward, *arguments
    )


def attention(causal, window=""):
    """Arguments of the innermost flash operator, recorded on an H100: batch, length, heads, width."""
    plain = ["", "", "559", "559", "0.", causal, "False", "0.125", window, window, "", ""]
    return [[16, 559, 16, 64]] * 3 + [[]] * 12, ["", "", "", *plain]


def test_a_causal_mask_halves_the_work():
    whole = 2 * 2 * 16 * 16 * 559 * 559 * 64
    assert flops("aten::_flash_attention_forward", *attention("False")) == whole
    assert flops("aten::_flash_attention_forward", *attention("True")) == whole // 2
    assert flops("aten::_flash_attention_forward", *attention("True", window="-1")) == whole // 2


@pytest.mark.parametrize(("kind", "share"), [("0", 1), ("1", 2), ("2", 2)])
def test_the_efficient_kernels_have_kinds_of_masks(kind, share):
    dims, whole = [[2, 32, 4, 8]] * 3 + [[]] * 11, 2 * 2 * 2 * 4 * 32 * 32 * 8
    now = ["", "", "", "", "", "", "", "", "0.", kind, "True", "", "", ""]
    before = ["", "", "", "", "", "", "", "0.", kind, "True", "", "", ""]
    assert flops("aten::_efficient_attention_forward", dims, now) == whole // share
    assert flops("aten::_efficient_attention_forward", dims[:-1], before) == whole // share


def test_shared_keys_count_for_every_head():
    dims, plain = [[2, 8, 16, 4], [2, 2, 16, 4], [2, 2, 16, 4], [], [], []], ["", "", "", "0.", "False", "False"]
    assert flops("aten::_scaled_dot_product_flash_attention", dims, plain) == 2 * 2 * 2 * 8 * 16 * 16 * 4


@pytest.mark.parametrize(
    ("operator", "dims", "concrete"),
    [
        ("aten::mm", [], []),
        ("aten::mm", [[3, 5], [6, 7]], ["", ""]),
        ("aten::mm", [[3, -5], [-5, 7]], ["", ""]),
        ("aten::mm", [[[3, 5]], [5, 7]], ["", ""]),
        ("aten::mm", [["3", "5"], [5, 7]], ["", ""]),
        ("aten::mm", "3x5", ""),
        ("aten::matmul", [[3, 5], [5, 7]], ["", ""]),
        ("aten::add", [[3, 5], [3, 5]], ["", ""]),
        ("my::own", [[3, 5], [5, 7]], ["", ""]),
        ("aten::convolution", [[2, 3, 9, 9], [8, 3, 3, 3]], ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]"]),
        ("aten::cudnn_convolution", [[2, 3, 9, 9], [8, 3, 3, 3]], ["", "", "[0, 0]", "[0, 0]", "[1, 1]"]),
        ("aten::cudnn_convolution", [[2, 3, 1, 1], [8, 3, 3, 3]], ["", "", "[0, 0]", "[1, 1]", "[1, 1]"]),
        ("aten::convolution_backward", [[2, 8, 7, 7], [2, 3, 9, 9], [8, 3, 3, 3]], []),
        ("aten::_flash_attention_forward", *attention("")),
        ("aten::_flash_attention_forward", *attention("True", window="128")),
        ("aten::_flash_attention_forward", [[96, 4, 8]] * 3 + [[5], [5]], [""] * 8 + ["False"]),
        (
            "aten::_scaled_dot_product_flash_attention",
            [[1, 1, 4, 8], [1, 1, 9, 8], [1, 1, 9, 8]],
            ["", "", "", "0.", "True"],
        ),
    ],
)
def test_unknown_operators_have_no_work(operator, dims, concrete):
    assert flops(operator, dims, concrete) is None
