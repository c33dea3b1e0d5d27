"""transfer: a copy between host and device runs, or is staged, and no kernel runs beside it.

Signal: copies on the device outside all kernels, and idle device time inside a copy call that blocks.
Formula: that time / the window.
Threshold: fires at 5 % of the window.
Source: TraceLens reports exposed copies from 5 % of the GPU's time on.
"""

from tb_bottleneck.measures.measure import Missing
from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.working import host_copies, pageable_copies
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.05


def judge(measures: Measures) -> Judgement:
    """Pageable memory is the first suspect: its copies are staged by the host. ROCm does not tell it from pinned."""
    share = measures.account.share("transfer")
    pageable = measures(pageable_copies)
    if isinstance(pageable, Missing):
        name = "exposed_copies"
    else:
        name = "pageable_copies" if pageable.value > 0 else "blocking_copies"
    cause = Cause(name, share, (host_copies, pageable_copies))
    return idle_judgement(measures, "transfer", FIRES_AT, (cause,))


RULE = Rule("transfer", judge, FIRES_AT)
