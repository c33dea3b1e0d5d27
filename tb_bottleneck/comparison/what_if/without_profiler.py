"""What a prediction comes to without the profiler's weight on the host.

A recording's host is slower than the training's own, and a host that is in the way hides what a device would bring. How
much slower is measured where the run's own step time was recorded with it; else what recording was seen to cost at most
bounds it, and so it does the prediction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tb_bottleneck.comparison.devices.loader_throughput import pace_of_workers
from tb_bottleneck.comparison.devices.replay_prediction import BY_REPLAY, Engine, Outcome
from tb_bottleneck.replay.host_scale import host_scaled, scales_of
from tb_bottleneck.replay.modified_graph import Case, World, recorded_world

Foretold = Callable[[Case, float], Outcome]


@dataclass(frozen=True)
class Unburdened:
    """Time per recorded step before / after, without the profiler: as expected, at worst and at best.

    `measured`: the run's own step time was recorded; else the host is as fast as it could be at most.
    """

    expected: float
    low: float
    high: float
    measured: bool


def least_of(found: Mapping[Case, Outcome]) -> float:
    """What no host makes a step shorter than, in ns: what the device computes in it, if that is not foretold itself."""
    least = found[Case.HIGH].least_ns
    return least if least == found[Case.LOW].least_ns else 0.0


def unburdened(engine: Engine, foretold: Foretold, slower: float, faster: float) -> Unburdened | None:
    """The prediction with the fastest host that must be reckoned with; None where that is the recorded one.

    `foretold` gives the outcome of a case on a host that takes so many times as long as recorded to dispatch; `slower`
    and `faster` are the shares by which a step may differ from it anyway.
    """
    if not engine.facts.check.trusted:
        return None
    scales = scales_of(recorded_world(engine.facts))
    if scales.least == 1.0:
        return None
    before = {case: engine.outcome(None, _lighter(engine, scales.least, case)).step_ns for case in Case}
    after = {case: foretold(case, scales.least) for case in Case}
    expected = after[Case.EXPECTED]
    if expected.basis != BY_REPLAY:
        return None
    gains = {case: before[case] / after[case].step_ns for case in Case}
    likely, best = gains[Case.EXPECTED], max(gains[Case.EXPECTED], gains[Case.HIGH]) * (1 + faster)
    least = min(least_of(after), expected.step_ns)
    if least:
        best = min(best, before[Case.HIGH] / least)
    return Unburdened(likely, min(gains.values()) / (1 + slower), max(best, likely), scales.solved)


def _lighter(engine: Engine, host: float, case: Case) -> Callable[[World], World]:
    """The recorded world on such a host; workers make batches at their own pace beside it."""
    paced = pace_of_workers(engine.recording, case)

    def lighter(world: World) -> World:
        world = host_scaled(world, host)
        return world if paced is None else paced(world)

    return lighter
