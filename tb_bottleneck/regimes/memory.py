"""memory: kernels run that the memory bandwidth bounds.

Signal: device time of kernels that do few operations per byte, by shapes or names.
Formula: that time / the window; where shapes were recorded, a kernel counts here if its traffic takes longer at the
device's bandwidth than its arithmetic at the device's peak.
Threshold: fires at 50 % of the window.
Source: more than half of the window is where a device regime bounds the run; which kernels stream is in
knowledge/kernels.toml.
"""

from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.products import memory_reached, roofs_known
from tb_bottleneck.measures.working import dearest_kernel
from tb_bottleneck.regimes.rule import CLEAR, FIRES, Judgement, Rule

FIRES_AT = 0.50


def judge(measures: Measures) -> Judgement:
    """Nothing is stated to be recoverable: how near the kernels are to the roof takes shapes and peaks."""
    share = measures.account.share("memory")
    return Judgement(
        FIRES if share >= FIRES_AT else CLEAR, share, evidence=(dearest_kernel, memory_reached, roofs_known)
    )


RULE = Rule("memory", judge, FIRES_AT)
