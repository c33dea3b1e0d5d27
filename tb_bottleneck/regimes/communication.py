"""communication: a collective runs that no compute hides.

Signal: collective kernels on the device outside all other kernels; on a CPU run, collectives on the main thread.
Formula: that time / the window.
Threshold: fires at 10 % of the window.
Source: torch-tb-profiler's rule for communication, 10 % (tb_plugin/torch_tb_profiler/profiler/data.py).
"""

from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.working import collectives, dearest_collective
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.10


def judge(measures: Measures) -> Judgement:
    """One rank alone cannot tell a slow link from a slow peer: both look like a long collective."""
    cause = Cause("exposed_collectives", measures.account.share("communication"), (collectives, dearest_collective))
    return idle_judgement(measures, "communication", FIRES_AT, (cause,))


RULE = Rule("communication", judge, FIRES_AT)
