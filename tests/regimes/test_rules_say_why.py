"""A rule's docstring has fixed parts, and its threshold in words is the one in the code."""

import importlib
import pkgutil
import re

import pytest

from tb_bottleneck import regimes
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.regimes.judge import RULES

MODULES = [
    name for _, name, package in pkgutil.iter_modules(regimes.__path__) if not package and name not in ("rule", "judge")
]


@pytest.mark.parametrize("name", MODULES)
def test_a_rule_documents_signal_formula_threshold_and_source(name):
    text = importlib.import_module(f"tb_bottleneck.regimes.{name}").__doc__
    assert text.startswith(f"{name}: ")
    for part in ("Signal:", "Formula:", "Threshold:", "Source:"):
        assert f"\n{part} " in text, f"{name} lacks {part}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.regime)
def test_the_threshold_in_words_is_the_one_in_the_code(rule):
    text = importlib.import_module(f"tb_bottleneck.regimes.{rule.regime}").__doc__
    stated = re.search(r"Threshold: fires at (\d+) % of the window", text)
    assert stated, "the docstring states no threshold"
    assert int(stated[1]) / 100 == rule.fires_at


def test_every_regime_has_a_rule_in_the_order_of_the_account():
    assert tuple(rule.regime for rule in RULES) == REGIMES
