"""The filter is called only for names that occur."""

import numpy as np

from tb_bottleneck.trace.kernel_names import name_matches


def test_rows_pass_by_their_name():
    asked: list[str] = []

    def test(name: str) -> bool:
        asked.append(name)
        return name.startswith("cuda")

    names = ("aten::mm", "cudaFree", "never", "cudaMalloc")
    assert name_matches(names, np.array([3, 0, 1, 3]), test).tolist() == [True, False, True, True]
    assert sorted(asked) == ["aten::mm", "cudaFree", "cudaMalloc"]
