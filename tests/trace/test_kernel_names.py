"""Short kernel names omit the argument types only."""

import pytest

from tb_bottleneck.trace.kernel_names import LONGEST, short


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("void f<float>(int, float const*, T::P)", "void f<float>"),
        ("void at::(anonymous namespace)::k<4, f(int)>(int, F<(a)1>)", "void at::(anonymous namespace)::k<4, f(int)>"),
        ("(anonymous)", "(anonymous)"),
        (")", ")"),
        ("", ""),
        ("a)b)", "a)b)"),
        ("k" * 1000, "k" * (LONGEST - 3) + "..."),
    ],
)
def test_short(name, shown):
    assert short(name) == shown
