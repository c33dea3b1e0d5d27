"""The table of scenarios is consistent: every scenario has texts, and every cause belongs to a regime."""

import importlib
from pkgutil import iter_modules

from tb_bottleneck.bottlenecks import FOLDER, names, registry
from tb_bottleneck.bottlenecks.judge import RULES
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.texts import assumptions, regime_advice, unsimulated
from tb_bottleneck.replay.scenario import Scenario


def test_every_scenario_names_its_assumption():
    for scenario in scenarios().values():
        words = assumptions()[scenario.name]
        assert words.title
        assert not words.text.endswith("."), "it ends a sentence that begins elsewhere"


def test_every_scenario_is_the_fix_of_a_cause():
    modules = [
        importlib.import_module(f"{registry.__package__}.{name}.{module.name}")
        for name in names()
        for module in iter_modules([str(FOLDER / name)])
    ]
    defined = {value.name for module in modules for value in vars(module).values() if type(value) is Scenario}
    assert defined == {scenario.name for scenario in scenarios().values()}


def test_every_cause_with_a_scenario_is_one_that_a_regime_names():
    named = {cause for rule in RULES for cause in regime_advice(rule.regime).causes}
    assert set(scenarios()) <= named


def test_of_every_other_cause_the_words_say_why_it_is_not_simulated():
    named = {cause for rule in RULES for cause in regime_advice(rule.regime).causes}
    assert named - set(scenarios()) == set(unsimulated())
    assert all(why.startswith("Not simulated: ") and why.endswith(".") for why in unsimulated().values())


def test_a_name_stands_for_one_scenario():
    by_name = {scenario.name: scenario for scenario in scenarios().values()}
    assert set(by_name) == set(assumptions()), "words without a scenario, or a scenario without words"
    assert all(by_name[scenario.name] is scenario for scenario in scenarios().values())
