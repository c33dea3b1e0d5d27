"""Predicts a run with another number of samples per step."""

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.underfilled.batch_growth import device_time_factors, scale_batches
from tb_bottleneck.bottlenecks.underfilled.fixes import LARGER_BATCH
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.replay.scenario import CannotPredict, ParameterScenario

MAX_SAMPLES = 1 << 30


def change_batch_size(recording: Recording, samples: int) -> ParameterScenario:
    """Returns the change to `samples` samples per step. Device time, loading and large copies grow with the samples.

    Raises:
        CannotPredict: the current number of samples is unknown, `samples` is out of range, or the run is on the CPU.
    """
    now = batch_size_of(recording)
    if isinstance(now, Missing):
        raise CannotPredict(f"{now.because[0].upper()}{now.because[1:]}.")
    if not 1 <= samples <= MAX_SAMPLES:
        raise CannotPredict(f"A step has 1 to {MAX_SAMPLES} samples.")
    if not recording.on_device:
        raise CannotPredict("The work ran on the CPU, where it is unknown how its time grows with the batch size.")
    grows = samples / now.samples
    assumptions = (
        f"a step has {now.samples} sample{'s' if now.samples > 1 else ''} now ({now.basis})",
        "device time grows with the samples, except for the optimizer and collectives; grids that leave "
        "multiprocessors idle fill them first",
        "the time of making and copying a batch is proportional to its size; there is enough memory; training "
        "converges as well",
    )
    return ParameterScenario(
        "batch",
        lambda graph, estimate: scale_batches(graph, grows),
        clause=f"a step had {samples} sample{'s' if samples > 1 else ''}",
        assumptions=assumptions,
        factors=lambda estimate: device_time_factors(recording, grows, estimate),
        samples=grows,
        fix=LARGER_BATCH,
    )
