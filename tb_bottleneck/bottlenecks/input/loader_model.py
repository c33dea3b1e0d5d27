"""A model of a training with loader workers, from what the monitor measured over the run: how long a step takes after a
change of the number of workers, and what limits it then.

A step takes as long as the longest of three times:

    rest      the step without the wait for a batch, and the time to take the batch from a worker
    workers   the time in which one worker makes a batch / the number of workers
    cores     (CPU time of the batch + CPU time of the rest of the step) / the cores that other processes leave

A worker that waits for storage needs no core, so its batch takes less CPU time than time.
"""

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing, Record, known_value, text_measure
from tb_bottleneck.bottlenecks.input.loader_workers import (
    BESIDE_WORKERS,
    BESIDE_WORKERS_ON_CPU,
    MOSTLY_WAITS,
    SLOWER_WORKERS,
    handover_ns,
)
from tb_bottleneck.bottlenecks.input.pipeline import (
    configured_workers,
    cores_of_others,
    cores_usable,
    loading_off_core,
    own_cores_while_loading,
    slowest_stage,
    time_per_batch,
    while_starved,
    worker_count_to_try,
)
from tb_bottleneck.replay.modified_graph import Estimate

# With as many threads as cores, each operator waits for the thread that shares its core with a worker. Low: of two
# trainings on two cores, one gained 1.68 times from a worker, and the steps of the other became 1.16 times as long.
BESIDE_FULL_CORES = 1.16
RUN_TO_RUN = 0.03  # two runs of one program differ by a few percent
# The part of the cores of other processes that they keep if more workers run: the scheduler divides cores evenly among
# the threads that can run, so more workers get more. Expected: the middle, where nothing else is known.
KEPT = {Estimate.EXPECTED: 0.5, Estimate.LOW: 1.0, Estimate.HIGH: 0.0}
# Some CPU time is polling, and goes with the waits: on one core, two trainings whose workers wait gained 1.05 and 1.16
# times what their CPU times allow.
MORE_THAN_CORES = 1.15
_THEN = {
    "rest": "the rest of the step: more workers would gain nothing",
    "workers": "the time of a batch: more workers would gain more, as long as cores are free",
    "cores": "the usable cores are busy: only a cheaper batch gains more",
}


class _Gain(Record, frozen=True):
    """Step time before / after, with the 90 % interval, and the key of what limits the step after it."""

    expected: float
    low: float
    high: float
    limit: str


def gain_of_workers(recording: TelemetryRecording) -> Measure | Missing:
    """Expected gain from the number of workers that is advised: step time before / after (count)."""
    return _measure(recording, "expected")


def least_gain_of_workers(recording: TelemetryRecording) -> Measure | Missing:
    """Low end of the 90 % interval of `gain_of_workers` (count)."""
    return _measure(recording, "low")


def most_gain_of_workers(recording: TelemetryRecording) -> Measure | Missing:
    """High end of the 90 % interval of `gain_of_workers` (count)."""
    return _measure(recording, "high")


def limit_with_workers(recording: TelemetryRecording) -> Measure | Missing:
    """What limits the step with the number of workers that is advised, as text."""
    gain, stage = _predicted(recording), slowest_stage(recording)
    if isinstance(gain, Missing):
        return gain
    cheaper = f" (most of it: {stage.text})" if gain.limit == "cores" and isinstance(stage, Measure) else ""
    return text_measure(_THEN[gain.limit] + cheaper)


def _measure(recording: TelemetryRecording, end: str) -> Measure | Missing:
    gain = _predicted(recording)
    return gain if isinstance(gain, Missing) else Measure(getattr(gain, end), "count", source=EVIDENCE_SOURCE)


class _Load(Record, frozen=True):
    """What a step needs now: its time `wall` and the wait `wait` in it, the time `batch` in which one process makes a
    batch, and the CPU times of the batch and of the rest of the step, all in ns. `cores` are the usable cores, `others`
    the part of them that other processes use, and `waits` the part of a batch that needs no core if the training
    process makes it."""

    wall: float
    wait: float
    batch: float
    batch_cpu: float
    rest_cpu: float
    cores: float
    others: float
    waits: float

    def cores_time(self, slower: float = 1.0, beside: float = 1.0, kept: float = KEPT[Estimate.EXPECTED]) -> float:
        """Returns the time in ns that the cores need for a step, if other processes keep the part `kept` of theirs."""
        return (self.batch_cpu * slower + self.rest_cpu * beside) / max(self.cores * (1 - self.others * kept), 1.0)


def gain_within_cores(recording: TelemetryRecording) -> Measure | Missing:
    """Largest gain that the cores allow, for any number of workers (count)."""
    load = _load(recording)
    if isinstance(load, Missing):
        return load
    return Measure(MORE_THAN_CORES * load.wall / max(load.cores_time(), 1.0), "count", source=EVIDENCE_SOURCE)


@memoized
def _load(recording: TelemetryRecording) -> _Load | Missing:
    wall, wait = (known_value(recording.per_step(name, "ns")) for name in ("wall", "loader_wait"))
    cores, others = known_value(cores_usable(recording)), known_value(cores_of_others(recording))
    now, own = configured_workers(recording), known_value(while_starved(recording, "process_cores", "count"))
    made_by = known_value(
        while_starved(recording, "worker_cores", "count") if now else own_cores_while_loading(recording)
    )
    if not wall or wait is None or not cores or others is None or own is None or made_by is None:
        return Missing("the times of batches, or the cores that they take, were not measured")
    # While the device waits for batches, each worker makes one batch after the other.
    batch = min(known_value(time_per_batch(recording)) or now * wall, now * wall) if now else wait
    waits = known_value(loading_off_core(recording)) or 0.0
    batch_cpu = made_by * wall if now else min(made_by, 1 - waits) * wait
    rest_cpu = max(own * wall - (0.0 if now else batch_cpu), 0.0)
    return _Load(wall, wait, batch, batch_cpu, rest_cpu, cores, others, waits)


@memoized
def _predicted(recording: TelemetryRecording) -> _Gain | Missing:
    load, now = _load(recording), configured_workers(recording)
    workers = known_value(worker_count_to_try(recording))
    if isinstance(load, Missing) or not workers:
        return load if isinstance(load, Missing) else Missing("no number of workers is advised")
    wall, wait, waits = load.wall, load.wait, load.waits

    def step(estimate: Estimate) -> dict[str, float]:
        slower = SLOWER_WORKERS[estimate]
        more = (BESIDE_WORKERS if recording.on_device else BESIDE_WORKERS_ON_CPU)[estimate] - 1
        beside = 1.0 if now else 1 + more * (1 - waits)
        return {
            "rest": (wall - wait) * beside + min(wait, handover_ns(recording.on_device, estimate)),
            "workers": load.batch * slower / workers,
            "cores": load.cores_time(slower, beside, KEPT[estimate]),
        }

    limits = step(Estimate.EXPECTED)
    expected, low, high = (wall / max(step(each).values()) for each in (Estimate.EXPECTED, Estimate.LOW, Estimate.HIGH))
    computes = not recording.on_device and not now and waits < MOSTLY_WAITS
    if computes and (recording.fact("torch_threads") or 0.0) >= load.cores:
        low = min(low, 1 / BESIDE_FULL_CORES)
    return _Gain(
        expected=max(expected, 1.0),
        low=min(low / (1 + RUN_TO_RUN), max(expected, 1.0)),
        high=max(high * (1 + RUN_TO_RUN), 1.0),
        limit=max(limits, key=lambda name: limits[name]),
    )
