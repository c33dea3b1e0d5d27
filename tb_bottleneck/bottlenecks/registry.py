"""Finds the bottlenecks: each folder of this package is one, and is named after its regime, or after what it is about.

A folder may have `rule.py` with RULE, which judges a trace; `telemetry_rule.py` with RULE, which judges telemetry;
`fixes.py` with FIXES, the scenario of each cause that can be simulated; and `texts.toml`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks import FOLDER, names
from tb_bottleneck.bottlenecks.rule_types import Rule
from tb_bottleneck.replay.scenario import Scenario


@cache
def rules(module: str) -> Mapping[str, Rule[Any]]:
    """Returns the RULE of each regime of the account that has the module `module`, by the id of the regime."""
    found = [regime for regime in REGIMES if find_spec(f"{__package__}.{regime}.{module}") is not None]
    return {regime: import_module(f"{__package__}.{regime}.{module}").RULE for regime in found}


@cache
def scenarios() -> Mapping[str, Scenario]:
    """Returns the scenario of each cause whose fix can be simulated. `unsimulated` of other causes says why not
    (texts.py)."""
    found: dict[str, Scenario] = {}
    for name in names():
        if (FOLDER / name / "fixes.py").exists():
            found |= import_module(f"{__package__}.{name}.fixes").FIXES
    return found
