"""The situation of a run without a problem: a small or large model, simple or complex data, and what can be changed."""

from functools import cache
from string import Template

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace.loader import WORKER_ITERATOR, loader_fetch, loader_iterator
from tb_bottleneck.measures.trace.purpose import steps_found, training_recorded
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes import compute, input
from tb_bottleneck.regimes.judge import Conclusion


def situation_of(measures: Measures[Recording], conclusion: Conclusion) -> str:
    """Returns the situation as sentences; empty if a problem was found, or if it is not known what limits the run."""
    if conclusion.severity != "none" or conclusion.regime == Regime.UNEXPLAINED:
        return ""
    account, texts = measures.account, _texts()
    working = account.share(Regime.COMPUTE) + account.share(Regime.MEMORY)
    model = "large" if working >= compute.FIRES_AT else "small"
    purpose = "next_of_training" if isinstance(measures(training_recorded), Measure) else "next_of_inference"
    following = f"{model}_on_device" if measures.on_device else f"{model}_on_cpu"
    sentences = texts["model"][model], texts["data"][_data(measures)], texts[purpose][following]
    per = "each step" if isinstance(measures(steps_found), Measure) else "the recording"
    return Template(" ".join(sentences)).safe_substitute(device="GPU" if measures.on_device else "CPU", per=per)


def _data(measures: Measures[Recording]) -> str:
    """Returns what is known of the data: the time in the loader shows it only without workers."""
    fetch, iterator = measures(loader_fetch), measures(loader_iterator)
    if not isinstance(fetch, Measure):
        return "unseen"
    if isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR:
        return "workers"
    step = measures.account.window / measures.steps
    return "complex" if fetch.value >= input.FIRES_AT * step else "simple"


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {name: table for name, table in load("situations.toml").items() if isinstance(table, dict)}
