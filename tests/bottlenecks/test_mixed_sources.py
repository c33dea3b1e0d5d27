"""A rule names measures of its own evidence source only: mypy refuses others, and no rule module imports them."""

import inspect
from pathlib import Path

import pytest
from helpers.modules import modules_of
from mypy import api

from tb_bottleneck import bottlenecks
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.trace import Recording

EXAMPLE = Path(__file__).with_name("mixed_sources.py")
# Installed packages and our other modules are not checked here, which makes this fast.
OPTIONS = ("--config-file=", "--no-site-packages", "--follow-imports=silent", "--ignore-missing-imports")

RULES = [
    (module, TelemetryRecording if module.__name__.endswith(".telemetry_rule") else Recording)
    for module in modules_of(bottlenecks)
    if module.__name__.endswith("rule") and module.__package__ != bottlenecks.__name__
]


def test_mypy_refuses_a_measure_of_the_other_source(tmp_path):
    output, errors, status = api.run([*OPTIONS, "--warn-unused-ignores", f"--cache-dir={tmp_path}", str(EXAMPLE)])
    assert (status, errors) == (0, ""), output
    assert EXAMPLE.read_text().count("# type: ignore[arg-type]") == 5


@pytest.mark.parametrize(("rule", "source"), RULES, ids=lambda value: value.__name__)
def test_a_rule_imports_measures_of_its_own_source(rule, source):
    functions = inspect.getmembers(rule, inspect.isfunction)
    for _, function in functions:
        parameters = list(inspect.signature(function).parameters.values())
        is_measure = len(parameters) == 1 and parameters[0].annotation in (Recording, TelemetryRecording)
        assert not is_measure or parameters[0].annotation is source, f"{rule.__name__} names {function.__name__}"
