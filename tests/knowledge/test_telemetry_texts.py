"""Every cause and measure of the rules for telemetry has its texts, and templates use only known values."""

import inspect
import re

import pytest

from tb_bottleneck.knowledge.telemetry_texts import telemetry_advice
from tb_bottleneck.measures.telemetry import (
    clocks,
    core_contention,
    device_utilisation,
    input_pipeline,
    pcie_link,
    step_phases,
)
from tb_bottleneck.regimes.telemetry import (
    allocator,
    compute,
    gpu_unused,
    host,
    input,
    interruption,
    launch,
    memory_underfilled,
    transfer,
    unexplained,
)

RULES = (allocator, compute, memory_underfilled, gpu_unused, host, input, interruption, launch, transfer, unexplained)
FILLED = {"share", "device", "per", "fires_at", "missing", "idle_device"}
MEASURES = {
    name
    for module in (clocks, core_contention, input_pipeline, step_phases, pcie_link, device_utilisation)
    for name in vars(module)
}


def named_causes() -> set[str]:
    return {name for rule in RULES for name in re.findall(r'Cause\(\s*"(\w+)"', inspect.getsource(rule))}


@pytest.mark.parametrize("name", sorted(named_causes()))
def test_a_cause_has_words(name):
    words = telemetry_advice().causes[name]
    assert words.title
    assert words.summary.endswith(".")
    assert words.confirm
    asked = set(re.findall(r"\$(\w+)", words.code.template + (words.headline.template if words.headline else "")))
    assert asked <= FILLED | MEASURES


def test_no_words_are_left_over():
    assert set(telemetry_advice().causes) == named_causes()
    assert set(telemetry_advice().lines) <= MEASURES


def test_templates_ask_for_what_is_filled_in():
    advice = telemetry_advice()
    for template in (*advice.headline.values(), *advice.because.values()):
        assert set(re.findall(r"\$(\w+)", template.template)) <= FILLED
