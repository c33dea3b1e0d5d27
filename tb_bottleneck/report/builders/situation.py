"""The situation of a run: a small or large model, simple or complex data; without a problem, what can be changed."""

from functools import cache
from string import Template

from tb_bottleneck.attribution.account import Account
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import own_work
from tb_bottleneck.measures.telemetry.input_pipeline import loader_wait_time
from tb_bottleneck.measures.telemetry.step_phases import timed_phase_count
from tb_bottleneck.measures.trace.loader import WORKER_ITERATOR, loader_fetch, loader_iterator
from tb_bottleneck.measures.trace.purpose import steps_found, training_recorded
from tb_bottleneck.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.regimes import compute, input
from tb_bottleneck.regimes.judge import Conclusion


def situation_of(measures: Measures[Recording], conclusion: Conclusion) -> str:
    """Returns the situation as sentences; empty if it is not known what limits the run.

    Beside a problem, trainings only have one: what they would be without the avoidable time.
    """
    if conclusion.regime == Regime.UNEXPLAINED:
        return ""
    if conclusion.severity != "none":
        trains = isinstance(measures(training_recorded), Measure)
        return _beside(_is_large(measures.account), _data(measures), measures.on_device) if trains else ""
    account, texts = measures.account, _texts()
    working = account.share(Regime.COMPUTE) + account.share(Regime.MEMORY)
    model = "large" if working >= compute.FIRES_AT else "small"
    purpose = "next_of_training" if isinstance(measures(training_recorded), Measure) else "next_of_inference"
    following = f"{model}_on_device" if measures.on_device else f"{model}_on_cpu"
    sentences = texts["model"][model], texts["data"][_data(measures)], texts[purpose][following]
    per = "each step" if isinstance(measures(steps_found), Measure) else "the recording"
    return Template(" ".join(sentences)).safe_substitute(device="GPU" if measures.on_device else "CPU", per=per)


def telemetry_situation(measures: Measures[TelemetryRecording], conclusion: Conclusion) -> str:
    """Returns the situation of a run that telemetry judges; empty if its phases or its device's work are not known."""
    known = isinstance(measures(own_work), Measure) and isinstance(measures(timed_phase_count), Measure)
    if conclusion.regime in (Regime.UNEXPLAINED, Regime.GPU_UNUSED) or not known:
        return ""
    account = measures.account
    waits = isinstance(measures(loader_wait_time), Measure)
    data = "unseen" if not waits else "complex" if account.share(Regime.INPUT) >= input.FIRES_AT else "simple"
    rest = _rest(account)
    is_large = measures.value(own_work, 0.0) >= compute.FIRES_AT * rest > 0
    return _beside(is_large, data, measures.on_device)


def _is_large(account: Account) -> bool:
    """Returns True if work at full size fills most of the time that no problem takes."""
    rest = _rest(account)
    return account.share(Regime.COMPUTE) + account.share(Regime.MEMORY) >= compute.FIRES_AT * rest > 0


def _rest(account: Account) -> float:
    """Returns the share of the time that the model itself takes: its work, and the launching of it."""
    return 1.0 - sum(account.share(regime) for regime in AVOIDABLE_REGIMES if regime is not Regime.LAUNCH)


def _beside(is_large: bool, data: str, on_device: bool) -> str:
    found = "unseen" if data == "workers" else data
    table = _texts()["beside_on_device" if on_device else "beside_on_cpu"]
    return table[f"{'large' if is_large else 'small'}_{found}"]


def _data(measures: Measures[Recording]) -> str:
    """Returns what is known of the data: the time in the loader shows it only without workers."""
    fetch, iterator = measures(loader_fetch), measures(loader_iterator)
    if measures.account.share(Regime.INPUT) >= input.FIRES_AT:
        return "complex"
    if not isinstance(fetch, Measure):
        return "unseen"
    if isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR:
        return "workers"
    step = measures.account.window / measures.steps
    return "complex" if fetch.value >= input.FIRES_AT * step else "simple"


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {name: table for name, table in load("situations.toml").items() if isinstance(table, dict)}
