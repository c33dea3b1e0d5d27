"""A pair runs on a machine that meets its requirement."""

import shutil

import pytest

from demo.needs import missing_for
from demo.pairs import CPU, GPU, PAIRS, TWO_GPUS, VARIANTS


@pytest.mark.parametrize(("gpus", "lacking"), [(0, {GPU, TWO_GPUS}), (1, {TWO_GPUS}), (2, set())])
def test_a_missing_requirement_is_named(gpus: int, lacking: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/c++" if name == "c++" else None)
    assert {missing_for(pair, gpus) for pair in PAIRS.values()} == lacking | {""}


def test_compiling_on_a_cpu_requires_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert missing_for(PAIRS["unfused_pointwise"], 0) == "a C++ compiler"
    assert missing_for(PAIRS["unfused_pointwise"], 1) == ""


def test_every_pair_has_a_script_with_a_switch() -> None:
    assert list(VARIANTS.values()) == [False, True]
    for pair in PAIRS.values():
        assert pair.expected
        assert pair.needs == CPU or not pair.on_cpu
