"""What delays a pipeline: uneven stages, uneven microbatches, and too few microbatches."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.base.stragglers import lower_median
from tb_bottleneck.jobs.causes.candidates import Candidate, Fact
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.own_table import BLOCKS
from tb_bottleneck.jobs.pipeline_passes import BACKWARD, FORWARD, is_interleaved, spans_of
from tb_bottleneck.jobs.scenarios import Changed, even_stages, even_work, microbatch_classes
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Floats, Ints

# Stages with a smaller ratio (time of the slowest stage / mean time) are balanced as well as whole layers allow.
MIN_STAGE_RATIO = 1.05
# Smallest relative standard deviation of the microbatch times of a stage that counts as uneven. Kernels of equal work
# vary by some percent.
MIN_MICROBATCH_SPREAD = 0.08
# If the length of the microbatches is the reason for their different times, the correlation of forward and backward
# times is at least the first value. From the second value on, a deviation of MIN_CERTAIN_SPREAD is no noise either.
# Both are chosen: in simulated pipelines, equal microbatches have 0.0 and unequal ones 0.97
# (tests/jobs/causes/test_pipelines.py).
MIN_PASSES_CORRELATION, CERTAIN_CORRELATION = 0.3, 0.9
MIN_CERTAIN_SPREAD = 0.03  # chosen: equal to the least cost of a cause that is named
# Smallest number of passes that can show a correlation, and largest number of ranks of a job that are examined. Both
# are chosen.
MIN_PASSES, MAX_CORRELATED = 12, 32
# Stages that differ by less than this part of a layer count as equal; chosen, kernels of equal work vary by as much.
SAME_LAYERS = 0.1
# Largest numbers of layers of one stage, and of stages, that are accepted from untrusted files. The largest models have
# some hundreds of layers in all.
MAX_LAYERS, MAX_STAGES = 1_000, 128
# Smallest share of the step for a bubble (idle time at the start and the end of a step) that is larger than planned.
# GPipe (arXiv 1811.06965) calls the bubble negligible from four microbatches per stage on (20 %). Two microbatches per
# stage (about 30 %) are usual where memory is short.
MIN_BUBBLE = 0.34


def uneven_stages(context: JobContext, slow: Ints) -> Iterator[Candidate]:
    """Yields a candidate if the slowest stage takes at least MIN_STAGE_RATIO times the mean time of the stages.

    `slow` are the ranks (positions) with a slow device. Slow ranks are left out where their stage has other ranks. If a
    stage has no recorded rank, the replay does not show what a fix saves. Then, the candidate has a bound (lower bound
    of the length of the job after the fix): all microbatches of a step but the first wait for the slowest stage, so the
    fix saves at most their share of (time of the slowest stage - mean time).
    """
    device, expected = context.own.typical[:, Own.DEVICE], context.own.typical_of(context.expected_device)
    usual = np.full(context.grid.stages, np.nan)  # stages of which no rank was recorded stay unknown
    for stage in np.unique(context.grid.stage).tolist():
        members = np.flatnonzero(context.grid.stage == stage)
        others = np.setdiff1d(members, slow)
        usual[stage] = lower_median(device[others] if len(others) else expected[members])
    unknown = np.isnan(usual)
    mean = float(np.where(unknown, lower_median(usual), usual).mean())
    if mean <= 0 or np.nanmax(usual) / mean < MIN_STAGE_RATIO:
        return
    slowest = int(np.nanargmax(usual))
    members = np.flatnonzero(context.grid.stage == slowest)
    ratio = float(np.nanmax(usual) / mean)
    facts: dict[str, Fact] = {"stage": float(slowest), "stage_ratio": ratio, "move_share": 1 - 1 / ratio}
    if unknown.any():
        passes = max(_microbatches_of(context), 1.0)
        saved = (1 - 1 / passes) * (np.nanmax(usual) - mean) * (context.steps if context.own.by_step else BLOCKS)
        yield Candidate("stage_imbalance", members, None, facts, bound=float(context.replay.length - saved))
        return
    faster = np.where(usual > mean, usual, np.nan)  # a faster output layer makes the other stages no slower
    after = np.full_like(usual, mean)
    layers = _layers_of(context)
    if layers is not None and usual.min() > 0:
        even, times = even_layers(layers, usual)
        after = np.minimum(usual, mean)  # if no whole layer can move, only the other work of the stage becomes faster
        if times.max() < usual.max():
            after = times
            facts |= {"layers": layers, "even_layers": even}

    def moved(changed: Changed, of: JobContext) -> Changed:
        return even_stages(changed, of, usual / after)

    def shortened(changed: Changed, of: JobContext) -> Changed:
        return even_stages(changed, of, faster / mean)

    yield Candidate("stage_imbalance", members, moved, facts, high=shortened)


def _layers_of(context: JobContext) -> list[int] | None:
    """Returns the number of layers of each stage, from the number of backward passes of attention per microbatch.

    Returns None if these numbers were not recorded, are no whole numbers from 1 to MAX_LAYERS or differ within a stage,
    or if the pipeline is interleaved or has more than MAX_STAGES stages.
    """
    if is_interleaved(context) or context.grid.stages > MAX_STAGES:
        return None
    last = int(np.argmax(context.grid.stage))  # every message to this stage starts a pass, so the passes can be counted
    steps = range(context.job.summaries[last].steps)
    counts = [max((span.microbatch for span in spans_of(context, last, step)), default=0) for step in steps]
    microbatches = float(np.median(counts))
    if not microbatches:
        return None
    layers = []
    for stage in range(context.grid.stages):
        members = np.flatnonzero(context.grid.stage == stage).tolist()
        calls = {context.job.summaries[member].facts.attentions / microbatches for member in members}
        if len(calls) != 1 or not (count := calls.pop()).is_integer() or not 0 < count <= MAX_LAYERS:
            return None
        layers.append(int(count))
    return layers


def even_layers(layers: list[int], times: Floats) -> tuple[list[int], Floats]:
    """Returns the numbers of layers per stage that minimise the time of the slowest stage, and the resulting times of
    the stages.

    `times` has the time of each stage with the current numbers of `layers`, in any unit. The time of one layer is
    assumed to be the smallest (time of a stage / its number of layers) over all stages. The remaining work of a stage,
    such as the embedding or the loss, is not moved. No more layers are moved than necessary.
    """
    layer = float((times / layers).min())
    others = times / layer - np.array(layers)  # in layers
    best = _filled(np.zeros(len(layers)), others, sum(layers))
    room = np.floor((best + others).max() - others + SAME_LAYERS)
    kept = np.minimum(layers, room)
    even = _filled(kept, others, int(sum(layers) - kept.sum()))
    return even.astype(int).tolist(), (even + others) * layer


def _filled(layers: Floats, others: Floats, count: int) -> Floats:
    """Returns `layers` (per stage) plus `count` more layers, each added to the stage with the least work so far.

    The work of a stage is its layers plus `others`, its other work in units of a layer.
    """
    filled = layers.copy()
    for _ in range(count):
        filled[np.argmin(np.round((filled + others) / SAME_LAYERS))] += 1
    return filled


def uneven_microbatches(context: JobContext) -> Iterator[Candidate]:
    """Yields a candidate if the device times of the microbatches of a stage differ by more than noise.

    The relative standard deviation must be at least MIN_MICROBATCH_SPREAD, or MIN_CERTAIN_SPREAD if forward and
    backward times of a microbatch are strongly correlated.
    """
    points = context.graph.points
    device, classes = points.own[:, Own.DEVICE], microbatch_classes(context)
    used = np.flatnonzero((classes >= 0) & (device > 0))
    if not len(used):
        return
    _, of_rank = np.unique(classes[used] * len(context.job.summaries) + points.rank[used], return_inverse=True)
    count, total = np.bincount(of_rank), np.bincount(of_rank, weights=device[used])
    mean = total / count
    deviation = np.sqrt(np.maximum(np.bincount(of_rank, weights=device[used] ** 2) / count - mean**2, 0.0))
    spread = float((deviation * count).sum() / total.sum())
    passes = _passes_correlation(context) if spread >= MIN_CERTAIN_SPREAD else None
    certain = passes is not None and passes >= CERTAIN_CORRELATION
    if spread >= (MIN_CERTAIN_SPREAD if certain else MIN_MICROBATCH_SPREAD) and not _is_noise(passes):
        facts = {"microbatch_spread": spread} | ({} if passes is None else {"passes_correlation": passes})
        yield Candidate("data_imbalance", np.arange(len(context.job.summaries)), even_work, facts)


def _is_noise(correlation: float | None) -> bool:
    """Returns True if the times of microbatches differ by chance, and not because the microbatches differ in length.

    `correlation` is that of the forward and the backward times (_passes_correlation). If it is None, the reason is not
    known, and the result is False.
    """
    return correlation is not None and correlation < MIN_PASSES_CORRELATION


def _passes_correlation(context: JobContext) -> float | None:
    """Returns the correlation of the forward time and the backward time of microbatches, each divided by the mean of
    its rank.

    A long sequence takes longer in both passes (OSDI'25, arXiv 2505.05713). A difference in only one pass is noise.
    Returns None if too few microbatches have both times, if one of the two times does not vary, or if the pipeline is
    interleaved. In an interleaved pipeline, the n-th forward pass and the n-th backward pass are not of the same
    microbatch.
    """
    times: list[tuple[float, float]] = []
    if is_interleaved(context):
        return None
    for row in range(0, len(context.job.summaries), -(-len(context.job.summaries) // MAX_CORRELATED)):
        mine: defaultdict[str, dict[tuple[int, int], float]] = defaultdict(dict)
        for place in range(context.job.summaries[row].steps):
            for span in spans_of(context, row, place):
                of = mine[span.phase]
                of[place, span.microbatch] = of.get((place, span.microbatch), 0.0) + span.end - span.begin
        forward, backward = mine[FORWARD], mine[BACKWARD]
        both = sorted(forward.keys() & backward.keys())
        if len(both) > 1:
            pair = np.array([[of[key] for key in both] for of in (forward, backward)])
            times += list(zip(*(pair / pair.mean(axis=1, keepdims=True)), strict=True))
    values = np.array(times).T
    if len(times) < MIN_PASSES or values.std(axis=1).min() == 0:
        return None
    return float(np.corrcoef(values)[0, 1])


def _microbatches_of(context: JobContext) -> float:
    """Returns the number of microbatches per step, estimated as the largest number of messages that a rank of the first
    recorded stage sends to one other rank per step; 0 if there are none.

    A stage sends one message per microbatch; in an interleaved pipeline, one per microbatch and chunk of layers.
    """
    rows = context.job.rows
    first = np.flatnonzero(context.grid.stage == context.grid.stage.min())
    sent = (rows.operation == Operation.SEND) & np.isin(rows.rank, first)
    _, counts = np.unique(np.stack((rows.rank[sent], rows.peer[sent])), axis=1, return_counts=True)
    return float(counts.max(initial=0)) / context.steps


def pipeline_bubble(context: JobContext) -> Iterator[Candidate]:
    """Yields a candidate if the pipeline has too few microbatches: the bubble takes at least MIN_BUBBLE of the step.

    The bubble of p stages and m microbatches is (p - 1) / (m + p - 1) of the step (Megatron-LM, arXiv 2104.04473). The
    bound of the candidate (lower bound of the length of the job after the fix) assumes that the bubble takes half of
    its time.
    """
    stages, microbatches = context.grid.stages, _microbatches_of(context)
    if stages < 2 or not microbatches:
        return
    bubble = (stages - 1) / (microbatches + stages - 1)
    if bubble < MIN_BUBBLE:
        return
    filled = (microbatches + stages - 1) / (microbatches + (stages - 1) / 2)
    facts = {"bubble": bubble, "microbatches": microbatches, "stages": float(stages)}
    everyone = np.arange(len(context.job.summaries))
    yield Candidate("pipeline_bubble", everyone, None, facts, bound=context.replay.length / filled)
