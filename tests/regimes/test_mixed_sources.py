"""A rule names measures of its own evidence source only: mypy refuses others, and no rule module imports them."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from mypy import api

from tb_bottleneck import regimes
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.regimes import telemetry

EXAMPLE = Path(__file__).with_name("mixed_sources.py")
# Installed packages and our other modules are not checked here, which makes this fast.
OPTIONS = ("--config-file=", "--no-site-packages", "--follow-imports=silent", "--ignore-missing-imports")

RULES = [
    *((f"{regimes.__name__}.{name}", Recording) for _, name, package in pkgutil.iter_modules(regimes.__path__)
      if not package),
    *((f"{telemetry.__name__}.{name}", TelemetryRecording) for _, name, _ in pkgutil.iter_modules(telemetry.__path__)),
]  # fmt: skip


def test_mypy_refuses_a_measure_of_the_other_source(tmp_path):
    output, errors, status = api.run([*OPTIONS, "--warn-unused-ignores", f"--cache-dir={tmp_path}", str(EXAMPLE)])
    assert (status, errors) == (0, ""), output
    assert EXAMPLE.read_text().count("# type: ignore[arg-type]") == 5


@pytest.mark.parametrize(("name", "source"), RULES, ids=lambda value: getattr(value, "__name__", value))
def test_a_rule_imports_measures_of_its_own_source(name, source):
    functions = inspect.getmembers(importlib.import_module(name), inspect.isfunction)
    measures = [function for _, function in functions if function.__module__.startswith("tb_bottleneck.measures.")]
    for measure in measures:
        (parameter,) = inspect.signature(measure).parameters.values()
        assert parameter.annotation is source, f"{name} names {measure.__name__}"
