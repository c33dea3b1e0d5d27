"""The words of comparisons: all there, and every place for a figure is one that is filled."""

import re
from pathlib import Path

import pytest

import tb_bottleneck.comparison
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.comparison_texts import (
    fact_titles,
    first_cuda,
    headline_text,
    series_text,
    shortfall_text,
    sweep_titles,
    what_if_text,
)

WORDS = load("comparison.toml")
CODE = "\n".join(path.read_text() for path in Path(tb_bottleneck.comparison.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("table", ["remainder", "headline", "series", "what_if"])
def test_every_word_is_used_and_each_of_its_figures_is_given(table):
    for name, text in WORDS[table].items():
        assert f'"{name}"' in CODE or name in ("faster", "slower", "remainder", "better"), name
        for figure in re.findall(r"\$(\w+)", text):
            assert re.search(rf"\b{figure}=|\"{figure}\":", CODE), f"{name}: {figure}"


def test_words_are_found_by_name():
    assert headline_text("refused").safe_substitute(because="x") == "No comparison: x"
    assert shortfall_text("starved") is not None
    assert shortfall_text("no_such_cause") is None
    assert "$" in series_text("row").template
    assert "$" in what_if_text("headline").template


def test_facts_and_sweeps_have_titles():
    assert next(iter(fact_titles())) == "device"
    assert sweep_titles()["samples"] == "samples per step"


def test_the_first_cuda_of_a_capability():
    assert first_cuda("9.0") == 11080
    assert first_cuda("1.0") is None
