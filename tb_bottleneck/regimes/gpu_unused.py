"""gpu_unused: a device is there, and the work ran on the CPU. An answer about the whole run, not a share of its steps.

Signal: devices are described, runtime calls were watched, not one of them launched anything, and operators ran.
Formula: none; it is a fact or it is not.
Threshold: fires at 1 operator on the CPU without any launch in a recording that would show launches.
Source: a zero utilisation with work going on is the first thing that guides on slow training tell to check.
"""

from tb_bottleneck.measures.measure_set import Measures, Recording
from tb_bottleneck.measures.trace.host_dispatch import operators
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import FIRES, Cause, Judgement, Verdict

REGIME = Regime.GPU_UNUSED


def verdict_of(measures: Measures[Recording]) -> Verdict[Recording]:
    """The verdict for a recording whose work was proved to have run on the CPU (quality/trace_defects.py)."""
    judgement = Judgement(FIRES, 1.0, 1.0, (Cause("model_on_cpu", 1.0, (operators,), bounded=False),))
    return Verdict(REGIME, judgement, {operators.__name__: measures(operators)})
