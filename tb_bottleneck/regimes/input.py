"""input: the device is idle while the host waits for, or makes, the next batch.

Signal: idle device time while the training thread is inside DataLoader.__next__.
Formula: that time / the window.
Threshold: fires at 5 % of the window; abstains below it where no DataLoader was recorded, since a loader of another
kind shows as Python.
Source: torch-tb-profiler's rule for data loading, 5 % (tb_plugin/torch_tb_profiler/profiler/data.py).
"""

from tb_bottleneck.measures.loading import loader_fetch, loader_idle, loader_iterator, workers_needed
from tb_bottleneck.measures.measure import Measure
from tb_bottleneck.measures.measures import MeasureFunction, Measures
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.05


def judge(measures: Measures) -> Judgement:
    """Names the cause by the iterator: one process loads in the training thread, several are too few or too slow."""
    iterator = measures(loader_iterator)
    kind = iterator.text if isinstance(iterator, Measure) else ""
    name = {
        "_SingleProcessDataLoaderIter": "loader_in_main_process",
        "_MultiProcessingDataLoaderIter": "too_few_workers",
    }.get(kind, "slow_loader")
    share = measures.account.share("input")
    evidence: tuple[MeasureFunction, ...] = (loader_idle, loader_fetch, loader_iterator)
    if name == "loader_in_main_process":
        evidence = (*evidence, workers_needed)
    cause = Cause(name, share, evidence)
    return idle_judgement(measures, "input", FIRES_AT, (cause,), seen_by=loader_fetch)


RULE = Rule("input", judge, FIRES_AT)
