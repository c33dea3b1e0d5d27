"""The step time without a profiler that the process of a trace measured before it recorded."""

from collections.abc import Sequence

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.attribution.unprofiled import logged_unprofiled
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.report.unprofiled import unprofiled_of
from tb_bottleneck.schema import bottleneck_pb2 as pb


def trace_unprofiled(recording: Recording, defects: Sequence[Defect]) -> pb.Unprofiled | None:
    """Returns the step time without a profiler next to the recorded one; None if the process did not measure it."""
    logged = logged_unprofiled(recording)
    if logged is None:
        return None
    codes = [defect.code for defect in defects]
    recorded = float((np.mean if logged.times else np.median)(recording.as_recorded.steps.durations))
    return unprofiled_of(logged.median, logged.steps, recorded, codes, logged.times, recording.correction is not None)
