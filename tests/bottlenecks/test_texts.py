"""Tests that every regime, cause and defect has its texts, and that templates use only values that are filled in."""

import inspect
import re

import pytest
from helpers.modules import modules_of

from tb_bottleneck import bottlenecks, measures
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.interruption.telemetry_rule import _KINDS
from tb_bottleneck.bottlenecks.texts import regime_advice, telemetry_advice
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.health_texts import health_advice

MEASURES = {name for module in modules_of(measures, bottlenecks) for name in vars(module)}
FILLED = {"share", "device", "per", "fires_at", "missing", "idle_device", "roofs"}


@pytest.mark.parametrize("regime", Regime)
def test_a_regime_has_meaning_headline_and_reasons(regime):
    words = regime_advice(regime)
    assert words.meaning.endswith(".")
    assert {"fires", "clear", "abstains"} <= set(words.because)
    for template in (words.headline, *words.because.values()):
        assert set(re.findall(r"\$(\w+)", template.template)) <= FILLED


@pytest.mark.parametrize("regime", Regime)
def test_evidence_names_measures_that_exist(regime):
    for name, cause in regime_advice(regime).causes.items():
        assert cause.evidence, f"{name} shows no evidence"
        asked = set(re.findall(r"\$(\w+)", cause.code.template)) - {
            "pinned",
            "gpu",
            "triton",
            "windows",
        }  # Context.code_values
        assert asked <= {line.measure for line in cause.evidence}, "code may use the figures of its evidence only"
        assert cause.confirm
        assert {line.measure for line in cause.evidence} <= MEASURES


@pytest.mark.parametrize("regime", Regime)
def test_advice_asks_for_no_stacks(regime):
    """Recordings with stacks were told to record them: only a measure that lacks them says so."""
    for name, cause in regime_advice(regime).causes.items():
        assert "with_stack" not in cause.summary + cause.code.template + cause.confirm, name


@pytest.mark.parametrize("code", list(load("health.toml")))
def test_a_defect_has_a_description_and_a_fix(code):
    words = health_advice(code)
    assert words.detail.template
    assert words.fix


RULES = [module for module in modules_of(bottlenecks) if module.__name__.endswith("telemetry_rule")]
FILLED_BY_TELEMETRY = {"share", "device", "per", "fires_at", "missing", "idle_device"}
CODE = {"pinned", "gpu", "triton", "windows"}


def named_causes() -> set[str]:
    return {name for rule in RULES for name in re.findall(r'Cause\(\s*"(\w+)"', inspect.getsource(rule))} | set(_KINDS)


@pytest.mark.parametrize("name", sorted(named_causes()))
def test_a_cause_has_texts(name):
    words = telemetry_advice().causes[name]
    assert words.title
    assert words.summary.endswith(".")
    assert words.confirm
    asked = set(re.findall(r"\$(\w+)", words.code.template + (words.headline.template if words.headline else "")))
    assert asked <= FILLED_BY_TELEMETRY | MEASURES | CODE


def test_no_texts_are_unused():
    assert set(telemetry_advice().causes) == named_causes()
    assert set(telemetry_advice().lines) <= MEASURES


def test_templates_use_values_that_are_filled_in():
    advice = telemetry_advice()
    for template in (*advice.headline.values(), *advice.because.values()):
        assert set(re.findall(r"\$(\w+)", template.template)) <= FILLED_BY_TELEMETRY
