"""Describes the situation of a trace in sentences: whether the model is small or large, and its data simple or complex.

If there is no problem, the situation says what can be changed. The text also names timers of the program that show
wrong times.
"""

import re
from functools import cache
from string import Template

from tb_bottleneck.attribution.owned_spans import Account
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.base.units import duration_text, quoted
from tb_bottleneck.bottlenecks.compute import rule as compute
from tb_bottleneck.bottlenecks.input import rule as input
from tb_bottleneck.bottlenecks.input.loader import WORKER_ITERATOR, loader_fetch, loader_iterator
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.kind_of_work import backward_recorded, only_operator, steps_found, training_recorded
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.user_code.timers import early_timers
from tb_bottleneck.trace.frames import frame_parts


def situation_of(measures: Measures[Recording], conclusion: Conclusion) -> str:
    """Returns the situation as sentences; empty if it is not known what limits the run.

    If there is a problem, the text says what would limit the run without the avoidable time. In this case, it is empty
    for recordings without a backward pass.
    """
    if conclusion.regime == Regime.UNEXPLAINED or isinstance(measures(only_operator), Measure):
        return ""
    if conclusion.severity != "none":
        if isinstance(measures(backward_recorded), Missing):
            return ""
        return beside_problem(_is_large(measures.account), _data(measures), measures.on_device)
    account, texts = measures.account, _texts()
    working = account.share(Regime.COMPUTE) + account.share(Regime.MEMORY)
    model = "large" if working >= compute.FIRES_AT else "small"
    purpose = "next_of_training" if isinstance(measures(training_recorded), Measure) else "next_of_inference"
    following = f"{model}_on_device" if measures.on_device else f"{model}_on_cpu"
    sentences = texts["model"][model], texts["data"][_data(measures)], texts[purpose][following]
    per = "each step" if isinstance(measures(steps_found), Measure) else "the recording"
    return Template(" ".join(sentences)).safe_substitute(device="GPU" if measures.on_device else "CPU", per=per)


def _is_large(account: Account) -> bool:
    """Returns True if kernels limited by arithmetic or memory bandwidth take at least the share compute.FIRES_AT of the
    time outside the avoidable regimes (see rest_of)."""
    rest = rest_of(account)
    return account.share(Regime.COMPUTE) + account.share(Regime.MEMORY) >= compute.FIRES_AT * rest > 0


def rest_of(account: Account) -> float:
    """Returns the fraction (0 to 1) of the time outside the avoidable regimes. The regime of launches counts as not
    avoidable."""
    return 1.0 - sum(account.share(regime) for regime in AVOIDABLE_REGIMES if regime is not Regime.LAUNCH)


def beside_problem(is_large: bool, data: str, on_device: bool) -> str:
    """Returns the sentence about the model and the data of a training that has a problem. `is_large` is True if the
    model keeps the device busy (see `_is_large`). `data` is "complex", "simple", "workers" or "unseen" (see `_data`).
    `on_device` is True if the run does not compute on the CPU."""
    found = "unseen" if data == "workers" else data
    table = _texts()["beside_on_device" if on_device else "beside_on_cpu"]
    return table[f"{'large' if is_large else 'small'}_{found}"]


def _data(measures: Measures[Recording]) -> str:
    """Returns what the time in the loader shows about the data: "complex", "simple", "workers" (workers load the data,
    so it is unknown) or "unseen" (no fetch was recorded)."""
    fetch, iterator = measures(loader_fetch), measures(loader_iterator)
    if measures.account.share(Regime.INPUT) >= input.FIRES_AT:
        return "complex"
    if not isinstance(fetch, Measure):
        return "unseen"
    if isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR:
        return "workers"
    step = measures.account.window / measures.steps
    return "complex" if fetch.value >= input.FIRES_AT * step else "simple"


_USUAL_PLACE = re.compile(r"[\w.<>]+ \([\w./:\\-]+:\d+\)")
_LONGEST_NAME = 120


@cache
def _texts() -> dict[str, dict[str, str]]:
    return {name: table for name, table in load("situations.toml").items() if isinstance(table, dict)}


def timers_text(recording: Recording) -> str:
    """Returns sentences about timers in the user's program that stop before the device has finished the timed work;
    empty if there are none."""
    timers = early_timers(recording)
    if not timers:
        return ""
    first, others = timers[0], len(timers) - 1
    text = Template(_texts()["timers"][("one", "two", "several")[min(others, 2)]])
    measured, missed = duration_text(first.measured), duration_text(first.missed)
    file, line, function = frame_parts(first.frame)
    place = f"{function} ({file}:{line})"
    if not _USUAL_PLACE.fullmatch(place):  # a name from a file must not read like a sentence of the report
        place = quoted(first.frame, _LONGEST_NAME)
    return text.safe_substitute(function=place, measured=measured, missed=missed, others=others)
