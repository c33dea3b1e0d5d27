"""A rule's docstring has fixed parts, and its threshold in words is the one in the code."""

import inspect
import re

import pytest
from helpers.modules import modules_of

from tb_bottleneck import bottlenecks
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks.judge import RULES

MODULES = [
    module
    for module in modules_of(bottlenecks)
    if module.__name__.endswith("rule") and module.__package__ != bottlenecks.__name__
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_rule_documents_signal_formula_threshold_and_source(module):
    name = module.__package__.rpartition(".")[2]
    assert re.match(rf"{name}( by telemetry)?: ", module.__doc__)
    for part in ("Signal:", "Formula:", "Threshold:", "Source:"):
        assert f"\n{part} " in module.__doc__, f"{name} lacks {part}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.regime)
def test_the_threshold_in_words_is_the_one_in_the_code(rule):
    text = inspect.getmodule(rule.judge).__doc__
    stated = re.search(r"Threshold: fires at (\d+) % of the window", text)
    assert stated, "the docstring states no threshold"
    assert int(stated[1]) / 100 == rule.fires_at


def test_every_regime_has_a_rule_in_the_order_of_the_account():
    assert tuple(rule.regime for rule in RULES) == REGIMES
