"""gpu_unused: a device is present, and the work ran on the CPU. A conclusion about the whole run, not a share of time.

Signal: devices are present, runtime calls were recorded, none of them launched anything, and operators ran.
Formula: none: it is either true or false.
Threshold: fires at 1 operator on the CPU without any launch in a recording that would show launches.
Source: guides on slow training first check for zero utilisation while work runs.
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.host.facts import operators
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Verdict
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording

REGIME = Regime.GPU_UNUSED


def verdict_of(measures: Measures[Recording]) -> Verdict[Recording]:
    """Returns the verdict `gpu_unused`, with the cause `model_on_cpu`. The verdict always fires, with a share of 1.

    Call it only for a recording whose work ran on the CPU although a device was present, as `work_ran_on_cpu` in
    quality/trace_defects.py detects.
    """
    judgement = Judgement(FIRES, 1.0, 1.0, (Cause("model_on_cpu", 1.0, (operators,), bounded=False),))
    return Verdict(REGIME, judgement, {operators.__name__: measures(operators)})
