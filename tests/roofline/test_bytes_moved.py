"""Bytes of operators, computed by hand."""

import pytest

from tb_bottleneck.roofline.bytes_moved import bytes_moved, list_itemsize_in
from tb_bottleneck.roofline.operator_args import itemsize

F, B, H, L, D = "float", "c10::BFloat16", "c10::Half", "long int", "double"
CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::(anonymous namespace)::OpaqueType"
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("float", 4),
        ("double", 8),
        ("c10::Half", 2),
        ("c10::BFloat16", 2),
        ("c10::Float8_e4m3fn", 1),
        ("bool", 1),
        ("unsigned char", 1),
        ("int", 4),
        ("long int", 8),
        ("c10::complex<float>", 8),
        ("TensorList", None),
        ("Scalar", None),
        ("Double", None),  # a plain number of torch before 1.13, unlike the tensor type double
        ("", None),
        ("my::Type", None),
    ],
)
def test_sizes_of_elements(name, size):
    assert itemsize(name) == size


CASES = [
    # products: factors and result once each, the bias too
    ("mm", [[3, 5], [5, 7]], [F, F], ["", ""], 4 * (15 + 35 + 21)),
    ("mm", [[3, 5], [5, 7], []], [B, B, "Scalar"], ["", "", "6"], 2 * (15 + 35) + 4 * 21),
    ("addmm", [[7], [3, 5], [5, 7], [], []], [B, B, B, "Scalar", "Scalar"], ["", "", "", "1", "1"], 2 * (7 + 71)),
    ("bmm", [[4, 3, 5], [4, 5, 7]], [H, H], ["", ""], 2 * 4 * 71),
    (
        "_scaled_mm",
        [[16, 32], [32, 64], [], [], [], [], [], []],
        ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", F, F, "", "", "Scalar", "Scalar"],
        ["", "", "", "", "", "", "15", "False"],
        16 * 32 + 32 * 64 + 2 * 16 * 64,
    ),
    ("mm", [[3, 5], [5, 7]], ["my::Type", "my::Type"], ["", ""], None),
    # convolutions: input, weight and output once each
    (
        "cudnn_convolution",
        [[4, 3, 9, 9], [8, 3, 3, 3], [], [], [], [], [], [], []],
        [B, B, *["ScalarList"] * 3, *["Scalar"] * 4],
        ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"],
        2 * (4 * 3 * 81 + 8 * 27 + 4 * 8 * 25),
    ),
    (
        "convolution",
        [[4, 6, 5, 5], [6, 2, 3, 3], [], [], [], [], [], [], []],
        [F, F, "", *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"],
        ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[1, 1]", "3"],
        4 * (4 * 6 * 25 + 6 * 2 * 9 + 4 * 6 * 100),  # transposed, 3 groups: 2 x 3 channels, 10 x 10 places
    ),
    (
        "convolution_backward",
        [[4, 8, 7, 7], [4, 3, 9, 9], [8, 3, 3, 3], *[[]] * 8],
        [F, F, F, *["ScalarList"] * 8],
        ["", "", "", "[8]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"],
        2 * 4 * (4 * 8 * 49 + 4 * 3 * 81 + 8 * 27),
    ),
    # attention: q, k, v and the result
    (
        "_flash_attention_forward",
        [[2, 16, 4, 8], [2, 24, 4, 8], [2, 24, 4, 8], *[[]] * 6],
        [B, B, B, "", "", *["Scalar"] * 4],
        ["", "", "", "", "", "16", "24", "0.", "False"],
        2 * 2 * 4 * 8 * (16 + 24 + 24 + 16),
    ),
    # pointwise: each input in its shape, the result broadcast
    ("add", [[4, 6], [4, 6], []], [F, F, "Scalar"], ["", "", "1"], 4 * 24 * 3),
    ("add", [[4, 6], [6], []], [F, F, "Scalar"], ["", "", "1"], 4 * (24 + 6 + 24)),
    ("add", [[4, 1], [1, 6], []], [F, F, "Scalar"], ["", "", "1"], 4 * (4 + 6 + 24)),
    ("add", [[4, 6], [4, 5], []], [F, F, "Scalar"], ["", "", "1"], None),
    ("add", [[4, 6], [4, 6], []], [B, F, "Scalar"], ["", "", "1"], 24 * (2 + 4 + 4)),
    ("add", [[4, 6], [4, 6], []], [B, H, "Scalar"], ["", "", "1"], 24 * (2 + 2 + 4)),
    ("add_", [[4, 6], [4, 6], []], [B, F, "Scalar"], ["", "", "1"], 24 * (2 + 4 + 2)),
    ("mul", [[4, 6], []], [B, D], ["", ""], 24 * (2 + 2) + 8),  # a wrapped number does not widen
    ("mul", [[4, 6], []], [L, D], ["", ""], 24 * (8 + 4) + 8),  # but makes whole numbers floating
    ("div", [[4, 6], [4, 6]], [L, L], ["", ""], 24 * (8 + 8 + 4)),
    ("eq", [[4, 6], []], [L, "Scalar"], ["", "1"], 24 * (8 + 1)),
    ("where", [[4, 6], [], [4, 6]], ["bool", F, F], ["", "", ""], 24 * (1 + 4 + 4) + 4),
    ("masked_fill_", [[8, 4, 6], [1, 4, 6], []], [F, "bool", "Scalar"], ["", "", "0"], 8 * 24 * 4 * 2 + 24),
    ("clamp_min", [[4, 6], [], [4, 6]], [F, "Int", F], [], 4 * 24 * 2),  # the last one is out=
    ("gelu", [[4, 6], []], [B, ""], ["", ""], 2 * 24 * 2),
    ("gelu_backward", [[4, 6], [4, 6], []], [B, B, ""], ["", "", ""], 2 * 24 * 3),
    ("addcmul_", [[4], [4], [4], []], [F, F, F, "Scalar"], ["", "", "", "1"], 4 * 4 * 4),
    ("max", [[4, 6], [4, 6]], [F, F], ["", ""], 4 * 24 * 3),
    ("add", [[4, 6], [4, 6]], [F, "my::Type"], ["", ""], None),
    ("add", [[], []], ["Scalar", "Scalar"], ["1", "2"], None),
    # copies: each side in its own type
    ("copy_", [[4, 6], [4, 6], []], [B, F, "Scalar"], ["", "", "False"], 24 * (2 + 4)),
    ("copy_", [[4, 6], [1, 6], []], [F, F, "Scalar"], ["", "", "False"], 4 * (24 + 6)),
    ("fill_", [[4, 6], []], [H, "Scalar"], ["", "0"], 2 * 24),
    ("zero_", [[4, 6]], [F], [""], 4 * 24),
    # reductions: the input and the result
    ("sum", [[4, 6, 5], [], [], []], [F, "ScalarList", "Scalar", ""], ["", "[0, -1]", "True", ""], 4 * (120 + 6)),
    ("sum", [[4, 6], []], [F, "Scalar"], ["", "6"], 4 * (24 + 1)),  # the number is a dtype
    ("mean", [[4, 6], [], [], []], [B, "ScalarList", "Scalar", ""], ["", "[1]", "False", ""], 2 * (24 + 4)),
    ("mean", [[4, 6], [], [], []], [B, "ScalarList", "Scalar", ""], ["", "[]", "False", ""], 2 * (24 + 1)),
    ("mean", [[4, 6], [], [], []], [F, "GenericList", "Bool", ""], [], None),  # torch before 1.13
    ("sum", [[4, 6], [], []], [F, "ScalarList", "Scalar"], ["", "[2]", "True"], None),
    ("max", [[4, 6]], [F], [""], 4 * (24 + 1)),
    ("max", [[4, 6], [], []], [F, "Scalar", "Scalar"], ["", "1", "False"], 4 * 24 + 4 * (4 + 8)),
    ("argmax", [[4, 6], [], []], [F, "Scalar", "Scalar"], ["", "0", "False"], 4 * 24 + 6 * 8),
    ("linalg_vector_norm", [[4, 6], [], [], [], []], [F], ["", "2", "[-1]", "True", ""], 4 * (24 + 4)),
    # norms
    (
        "native_layer_norm",
        [[4, 6], [], [6], [6], []],
        [B, "ScalarList", B, B, "Scalar"],
        ["", "[6]", "", "", "1e-05"],
        2 * (2 * 24 + 6 + 6),
    ),
    (
        "native_layer_norm_backward",
        [[4, 6], [4, 6], [], [4, 1], [4, 1], [6], [6], []],
        [F, F, "ScalarList", F, F, F, F, "ScalarList"],
        ["", "", "[6]", "", "", "", "", "[True, True, True]"],
        4 * (3 * 24 + 4 + 4 + 2 * 6 + 6),
    ),
    ("cudnn_batch_norm", [[4, 6, 5, 5], [6]], [H, F], ["", "", "", "", "", "True"], 2 * 600 * 3),
    ("cudnn_batch_norm", [[4, 6, 5, 5], [6]], [H, F], ["", "", "", "", "", "False"], 2 * 600 * 2),
    ("cudnn_batch_norm", [[4, 6, 5, 5], [6]], [F, F], [], None),
    ("cudnn_batch_norm_backward", [[4, 6, 5, 5], [4, 6, 5, 5], [6]], [F, F, F], [], 4 * 600 * 5),
    ("native_batch_norm_backward", [[4, 6, 5, 5], [4, 6, 5, 5], [6]], [F, F, F], [], 4 * 600 * 5),
    # softmax, dropout, look-ups, losses
    ("_softmax", [[4, 6], [], []], [B, "Scalar", "Scalar"], ["", "-1", "False"], 2 * 24 * 2),
    ("_log_softmax", [[4, 6], [], []], [B, "Scalar", "Scalar"], ["", "-1", "True"], 24 * (2 + 4)),
    ("_log_softmax_backward_data", [[4, 6], [4, 6], [], []], [F, F, "Scalar", "Scalar"], [], 4 * 24 * 3),
    ("native_dropout", [[4, 6], [], []], [B, "Scalar", "Scalar"], ["", "0.1", "True"], 24 * (2 + 2 + 1)),
    ("native_dropout_backward", [[4, 6], [4, 6], []], [B, "bool", "Scalar"], ["", "", "1.1"], 24 * (2 + 1 + 2)),
    ("embedding", [[1000, 16], [4, 6]], [F, L], ["", ""], 24 * 16 * 4 * 2 + 24 * 8),
    ("embedding_dense_backward", [[4, 6, 16], [4, 6], []], [F, L, "Scalar"], ["", "", "1000"], 24 * 16 * 12 + 24 * 8),
    ("index_select", [[1000, 16], [], [24]], [B, "Scalar", L], ["", "0", ""], 24 * 16 * 2 * 2 + 24 * 8),
    ("index_select", [[1000, 16], [], [24]], [B, "Scalar", L], ["", "2", ""], None),
    ("gather", [[4, 6], [], [4, 3]], [F, "Scalar", L], ["", "1", ""], 12 * (4 + 4 + 8)),
    ("nll_loss_forward", [[32, 1000], [32], [], [], []], [F, L, "", "Scalar", "Scalar"], [], 32 * (4 + 8)),
    ("nll_loss_backward", [[], [32, 1000], [32]], [F, F, L], [], 32 * (4 + 8)),
    # unknown operators, and malformed recordings
    ("nonzero", [[4, 6]], [F], [""], None),
    ("copy_", [], [], [], None),
    ("copy_", "x", "y", "z", None),
    ("native_layer_norm", [["a"]], [F], [""], None),
]


@pytest.mark.parametrize(("name", "dims", "types", "concrete", "expected"), CASES, ids=[str(c[:3]) for c in CASES])
def test_bytes_by_hand(name, dims, types, concrete, expected):
    assert bytes_moved(f"aten::{name}", dims, types, concrete) == expected


def test_inductors_kernels_record_their_buffers():
    dims, types = [[8, 16], [8, 16], [128], []], [B, B, B, "Scalar"]
    assert bytes_moved("triton_poi_fused_add_3", dims, types, ["", "", "", "128"]) == 3 * 128 * 2


P = [[10, 20], [20]]  # 220 parameters
LISTS = [
    ("cat", [[[4, 6], [4, 5]], []], ["TensorList", "Scalar"], 2 * 44 * 4),
    ("_foreach_add_", [P, P, []], ["TensorList", "TensorList", "Scalar"], 3 * 220 * 4),
    ("_foreach_add", [P, []], ["TensorList", "Scalar"], 2 * 220 * 4),
    ("_foreach_zero_", [P], ["TensorList"], 220 * 4),
    ("_foreach_norm", [P, []], ["TensorList", "Scalar"], 220 * 4),
    ("_foreach_copy_", [P, P, []], ["TensorList", "TensorList", "Scalar"], 2 * 220 * 4),
    ("_foreach_addcdiv_", [P, P, P, []], ["TensorList"] * 3 + ["ScalarList"], 4 * 220 * 4),
    ("_fused_sgd_", [P, P, [], [], []], ["TensorList"] * 3 + ["Scalar"] * 2, 3 * 220 * 4),
    ("_fused_sgd_", [P, P, P, [], []], ["TensorList"] * 3 + ["Scalar"] * 2, 5 * 220 * 4),
    ("_fused_adamw_", [P, P, P, P, [], [[], []], []], ["TensorList"] * 6 + ["Scalar"], 7 * 220 * 4 + 2 * 2 * 4),
]


@pytest.mark.parametrize(("name", "dims", "types", "expected"), LISTS, ids=[f"{c[0]} {len(c[1])}" for c in LISTS])
def test_lists_need_the_size_of_their_elements(name, dims, types, expected):
    concrete = [""] * len(dims)
    assert bytes_moved(f"aten::{name}", dims, types, concrete, list_itemsize=4) == expected
    assert bytes_moved(f"aten::{name}", dims, types, concrete) is None


def test_lists_of_older_recordings_have_no_shapes():
    assert bytes_moved("aten::_foreach_add_", [[], []], ["TensorList", "Scalar"], ["", "1"], list_itemsize=4) is None
    assert bytes_moved("aten::cat", [[["a"]], []], ["TensorList", "Scalar"], ["", "1"], list_itemsize=4) is None


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        (CAT + "<2u>, unsigned int, 3, 128, 1>(at::native::(anonymous namespace)::OpaqueType<2u>*", 2),
        (CAT + "<4u>, unsigned int, 1, 128, 1>", 4),
        (FOREACH + "TensorListMetadata<2>, at::native::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>>", 4),
        (FOREACH + "FusedOptimizerTensorListMetadata<4>, at::native::FusedAdamMathFunctor<c10::BFloat16, 4>>", 2),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float>", 4),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", None),
        ("", None),
    ],
)
def test_kernel_names_contain_the_size_of_list_elements(kernel, size):
    assert list_itemsize_in(kernel) == size
