"""gpu_unused by telemetry: a device is present, its utilisation is about zero, and work runs.

Signal: utilisation of the device, steps that end, or cores that this process uses.
Formula: none: it is either true or false.
Threshold: utilisation below 2 % of the judged time, with steps or with half of a core in use, and less than 1 MB in
tensors on the device: a fast device that waits for data may be busy for 1 % of the time.
Source: bottlenecks/gpu_unused/rule.py; a desktop that draws its screen exceeds a few percent only while something
moves.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.gpu_unused.rule import REGIME
from tb_bottleneck.bottlenecks.input.pipeline import cores_busy
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Verdict
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import FEW_BYTES, bytes_in_tensors, process_cores, utilisation
from tb_bottleneck.measures.telemetry.host import step_time

UNUSED = 0.02
WORKING_CORES = 0.5


def verdict_of(measures: Measures[TelemetryRecording]) -> Verdict[TelemetryRecording] | None:
    """Returns the verdict `gpu_unused`, with the cause `model_on_cpu`, if work runs but the device is unused. Returns
    None if the device is used, or if this is not known."""
    used = measures(utilisation)
    work_runs = measures.steps > 0 or measures.value(process_cores, 0.0) >= WORKING_CORES
    has_tensors = measures.value(bytes_in_tensors, 0.0) >= FEW_BYTES
    if isinstance(used, Missing) or used.value >= UNUSED or not work_runs or has_tensors:
        return None
    evidence = (utilisation, step_time, process_cores, cores_busy)
    judgement = Judgement(FIRES, 1.0, 1.0, (Cause("model_on_cpu", 1.0, evidence, bounded=False),))
    return Verdict(REGIME, judgement, {measure.__name__: measures(measure) for measure in evidence})
