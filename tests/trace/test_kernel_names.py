"""Tests of short kernel names, and of the filter by name, which is called only for names that occur.

Short names omit the types of return value and arguments; longer ones lose what distinguishes least.
"""

import numpy as np
import pytest

from tb_bottleneck.trace.kernel_names import LONGEST, name_matches, short


def test_rows_pass_by_their_name():
    asked: list[str] = []

    def test(name: str) -> bool:
        asked.append(name)
        return name.startswith("cuda")

    names = ("aten::mm", "cudaFree", "never", "cudaMalloc")
    assert name_matches(names, np.array([3, 0, 1, 3]), test).tolist() == [True, False, True, True]
    assert sorted(asked) == ["aten::mm", "cudaFree", "cudaMalloc"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("void f<float>(int, float const*, T::P)", "f<float>"),
        ("void at::(anonymous namespace)::k<4, f(int)>(int, F<(a)1>)", "at::(anonymous namespace)::k<4, f(int)>"),
        ("(anonymous)", "(anonymous)"),
        (")", ")"),
        ("", ""),
        ("a)b)", "a)b)"),
        ("k" * 1000, "k" * (LONGEST - 3) + "..."),
    ],
)
def test_short(name, shown):
    assert short(name) == shown


MULTI = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<3>, at::native::(anonymous namespace)::TernaryOpScalarFunctor<float, 2, 1>, int>(int)"
)


@pytest.mark.parametrize(
    ("longest", "shown"),
    [
        (100, "multi_tensor_apply_kernel<TensorListMetadata<3>, TernaryOpScalarFunctor<float, 2, 1>, int>"),
        (80, "multi_tensor_apply_kernel<TensorListMetadata<3>, TernaryOpScalarFunctor<>, int>"),
        (40, "multi_tensor_apply_kernel<TensorListM..."),
    ],
)
def test_long_names_keep_what_distinguishes_them(longest, shown):
    assert short(MULTI, longest) == shown
