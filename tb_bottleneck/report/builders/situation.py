"""Describes in sentences what a trace without a problem shows, and what can still be changed; and names timers of the
program that show wrong times."""

import re
from string import Template

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import duration_text, quoted, share_text
from tb_bottleneck.bottlenecks.compute import rule as compute
from tb_bottleneck.bottlenecks.input import rule as input
from tb_bottleneck.bottlenecks.input.loader import WORKER_ITERATOR, loader_fetch, loader_iterator
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.kind_of_work import only_operator, steps_found, training_recorded
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.user_code.early_timers import early_timers
from tb_bottleneck.trace.frames import frame_parts


def situation_of(measures: Measures[Recording], conclusion: Conclusion) -> str:
    """Returns the situation of a run without a problem as sentences; empty if there is a problem, or if it is not known
    what limits the run."""
    known = conclusion.severity == "none" and conclusion.regime != Regime.UNEXPLAINED
    if not known or isinstance(measures(only_operator), Measure):
        return ""
    account, texts = measures.account, load("situations.toml")
    working = account.share(Regime.COMPUTE) + account.share(Regime.MEMORY)
    purpose = "next_of_training" if isinstance(measures(training_recorded), Measure) else "next_of_inference"
    size = "large" if working >= compute.FIRES_AT else "small"
    following = f"{size}_on_{'device' if measures.on_device else 'cpu'}"
    sentences = texts["work"], texts["data"][_data(measures)], texts[purpose][following]
    device, share = "GPU" if measures.on_device else "CPU", share_text(working)
    per = "each step" if isinstance(measures(steps_found), Measure) else "the recording"
    return Template(" ".join(filter(None, sentences))).safe_substitute(device=device, share=share, per=per)


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


def timers_text(recording: Recording) -> str:
    """Returns sentences about timers in the user's program that stop before the device has finished the timed work;
    empty if there are none."""
    timers = early_timers(recording)
    if not timers:
        return ""
    first, others = timers[0], len(timers) - 1
    text = Template(load("situations.toml")["timers"][("one", "two", "several")[min(others, 2)]])
    measured, missed = duration_text(first.measured), duration_text(first.missed)
    file, line, function = frame_parts(first.frame)
    place = f"{function} ({file}:{line})"
    if not _USUAL_PLACE.fullmatch(place):  # a name from a file must not read like a sentence of the report
        place = quoted(first.frame, _LONGEST_NAME)
    return text.safe_substitute(function=place, measured=measured, missed=missed, others=others)
