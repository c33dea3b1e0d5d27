"""Every cause and measure of the rules for telemetry has its texts, and templates use only known values."""

import importlib
import inspect
import re
from pkgutil import iter_modules

import pytest

from tb_bottleneck.knowledge.advice_texts import telemetry_advice
from tb_bottleneck.measures import telemetry as telemetry_measures
from tb_bottleneck.regimes import telemetry
from tb_bottleneck.regimes.telemetry.interruption import _KINDS

RULES = [importlib.import_module(f"{telemetry.__name__}.{module.name}") for module in iter_modules(telemetry.__path__)]
FILLED = {"share", "device", "per", "fires_at", "missing", "idle_device"}
CODE = {"pinned", "gpu", "triton", "windows"}
MEASURES = {
    name
    for module in iter_modules(telemetry_measures.__path__)
    for name in vars(importlib.import_module(f"{telemetry_measures.__name__}.{module.name}"))
}


def named_causes() -> set[str]:
    return {name for rule in RULES for name in re.findall(r'Cause\(\s*"(\w+)"', inspect.getsource(rule))} | set(_KINDS)


@pytest.mark.parametrize("name", sorted(named_causes()))
def test_a_cause_has_texts(name):
    words = telemetry_advice().causes[name]
    assert words.title
    assert words.summary.endswith(".")
    assert words.confirm
    asked = set(re.findall(r"\$(\w+)", words.code.template + (words.headline.template if words.headline else "")))
    assert asked <= FILLED | MEASURES | CODE


def test_no_texts_are_unused():
    assert set(telemetry_advice().causes) == named_causes()
    assert set(telemetry_advice().lines) <= MEASURES


def test_templates_use_values_that_are_filled_in():
    advice = telemetry_advice()
    for template in (*advice.headline.values(), *advice.because.values()):
        assert set(re.findall(r"\$(\w+)", template.template)) <= FILLED
