"""compute: kernels run that the arithmetic units bound; on a CPU run, operators that do many operations per byte.

Signal: device time of matrix products, convolutions and attention, by their names.
Formula: that time / the window.
Threshold: fires at 50 % of the window.
Source: more than half of the window is where a device regime bounds the run; which kernels contract is in
knowledge/kernels.toml. More threads than cores: torch's notes on CPU threading, and torchrun's own OMP_NUM_THREADS=1.
"""

from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.working import cores, dearest_kernel, threads_per_core, torch_threads
from tb_bottleneck.regimes.rule import CLEAR, FIRES, Cause, Judgement, Rule

FIRES_AT = 0.50
# More runnable threads than cores cannot compute more, only take turns.
OVERSUBSCRIBED = 1.0


def judge(measures: Measures) -> Judgement:
    """On the CPU, threads beyond the cores slow every operator: then the operators' own time is what is at stake."""
    account = measures.account
    share = account.share("compute")
    if not measures.on_device and measures.value(threads_per_core, otherwise=0.0) > OVERSUBSCRIBED:
        at_stake = share + account.share("memory")
        cause = Cause("oversubscribed_threads", at_stake, (threads_per_core, torch_threads, cores), bounded=False)
        return Judgement(FIRES, share, at_stake, (cause,))
    return Judgement(FIRES if share >= FIRES_AT else CLEAR, share, evidence=(dearest_kernel,))


RULE = Rule("compute", judge, FIRES_AT)
