"""Texts of comparisons: each is used, and each placeholder is filled."""

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

TEXTS = load("comparison_texts.toml")
CODE = "\n".join(path.read_text() for path in Path(tb_bottleneck.comparison.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("table", ["shortfall", "headline", "series", "what_if"])
def test_every_text_is_used_and_each_of_its_placeholders_is_filled(table):
    for name, text in TEXTS[table].items():
        assert f'"{name}"' in CODE or name in ("faster", "slower"), name
        for placeholder in re.findall(r"\$(\w+)", text):
            assert re.search(rf"\b{placeholder}=|\"{placeholder}\":", CODE), f"{name}: {placeholder}"


def test_texts_are_found_by_name():
    assert headline_text("refused").safe_substitute(because="x") == "No comparison: x"
    assert shortfall_text("starved") is not None
    assert shortfall_text("no_such_cause") is None
    assert "$" in series_text("history").template
    assert "$" in what_if_text("headline").template


def test_facts_and_sweeps_have_titles():
    assert next(iter(fact_titles())) == "device"
    assert sweep_titles()["samples"] == "samples per step"


def test_the_first_cuda_of_a_capability():
    assert first_cuda("9.0") == 11080
    assert first_cuda("1.0") is None
