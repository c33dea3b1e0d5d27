"""Builds the plan: the order of fixes, with the cumulative gain after each, simulated on the recorded graph.

The best fix is applied, then the resulting graph is simulated again with each remaining fix, because two fixes that
save the same time do not add up. The plan ends when neither the next fix nor a group of fixes would save at least
WORTH_DOING.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.bottlenecks.input.fixes import at_workers_pace
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.replay.gain import Gain, Variants, gain_of, without_fixes
from tb_bottleneck.replay.host_scale import HostScale, host_scale_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.simulator import Check

# A fix that saves a smaller share of the remaining step cannot be distinguished from the noise between two runs of one
# training (a few percent).
WORTH_DOING = 0.02


class PlanStep(Record, frozen=True):
    """One fix of the plan: the `cause` that it removes, and the name of the `scenario` that simulates it.

    `total` is the gain of this fix together with all earlier fixes of the plan; `step_ns` is the expected mean step
    time in ns with these fixes.
    """

    cause: str
    scenario: str
    step_ns: float
    total: Gain


class Prediction(Record, frozen=True):
    """The predicted gains for one recording.

    `check` says whether the replay of the unmodified recording can be trusted. `gains` has for each cause the gain of
    its fix alone, `plan` the fixes in the recommended order. Both are empty if the replay is not trusted or no cause
    has a scenario. `host_scale` is the profiler overhead, or None if the replay is not trusted.
    """

    check: Check
    gains: Mapping[str, Gain]
    plan: tuple[PlanStep, ...]
    host_scale: HostScale | None


def predict(recording: Recording, causes: Iterable[str]) -> Prediction:
    """Returns the predicted gains of fixing `causes`, which are names of causes in any order. Causes without a scenario
    are left out."""
    base = RecordedGraph(recording.for_replay)
    simulated = [cause for cause in causes if _applies(cause, recording)]
    if not base.check.trusted:
        return Prediction(base.check, {}, (), None)
    graph = unmodified_graph(base)
    host_scale = host_scale_of(graph)
    start = without_fixes(at_workers_pace(graph), host_scale)
    gains: dict[str, Gain] = {}
    windows: dict[str, float] = {}
    for name, scenario in {scenarios()[cause].name: scenarios()[cause] for cause in simulated}.items():
        fixed = start.with_fix(scenario)  # not kept: the five graphs of a large recording take megabytes
        if fixed is not None:
            gains[name], windows[name] = gain_of(start, fixed), fixed.expected.window()
    gain_of_cause = {cause: gains[scenarios()[cause].name] for cause in simulated if scenarios()[cause].name in gains}
    step_ns = recording.account.window / len(recording.steps)
    plan = tuple(_greedy(start, step_ns, gains, windows, list(gain_of_cause)))
    return Prediction(base.check, gain_of_cause, plan, host_scale)


def _applies(cause: str, recording: Recording) -> bool:
    return cause in scenarios() and (recording.on_device or scenarios()[cause].on_cpu)


def _greedy(
    start: Variants, step_ns: float, gains: Mapping[str, Gain], windows: Mapping[str, float], causes: list[str]
) -> Iterable[PlanStep]:
    """Yields the fixes of the plan, each time the one that saves most after the fixes before it.

    `start` is the recording without fixes, with steps of `step_ns`. `gains` and `windows` (expected windows in ns) are
    those of each fix alone, by the name of the scenario. If no single fix is worth doing, a group of fixes may be: for
    example, if only one of several waits is removed, the host waits as long at the next one.
    """
    now, left = start, {scenarios()[cause].name: cause for cause in reversed(causes)}
    before = now.expected.window()
    while left:
        first = now is start
        after = {cause: windows[name] if first else _window_of(now, [cause]) for name, cause in left.items()}
        best = min(after, key=lambda cause: after[cause])
        alone = before - after[best] >= WORTH_DOING * before
        fixes = [best] if alone else _group(now, after)
        for cause in fixes:
            variants = now.with_fix(scenarios()[cause])
            if variants is None:
                return
            total = gains[scenarios()[cause].name] if now is start else gain_of(start, variants)
            now, left = variants, {name: other for name, other in left.items() if other != cause}
            before = after[best] if alone else now.expected.window()
            yield PlanStep(cause, scenarios()[cause].name, step_ns / total.expected, total)
        if not fixes:
            return


def _group(now: Variants, after: Mapping[str, float]) -> list[str]:
    """Returns the causes whose fixes are worth doing together, the largest single effect first; empty if there is none.

    `now` is the recording with the fixes chosen so far, `after` the expected window in ns with each further fix alone.
    Together, the fixes must save at least WORTH_DOING of the window per fix. Starting with the smallest effect, each
    fix is left out if the others save nearly as much without it (less than WORTH_DOING of the window is given up).
    """
    before = now.expected.window()
    group = sorted((cause for cause in after if np.isfinite(after[cause])), key=lambda cause: after[cause])
    if len(group) < 2:
        return []
    least = _window_of(now, group)
    for cause in reversed(group.copy()):
        smaller = [other for other in group if other != cause]
        window = _window_of(now, smaller)
        if window - least < WORTH_DOING * before:
            group, least = smaller, window
    return group if len(group) > 1 and before - least >= WORTH_DOING * before * len(group) else []


def _window_of(now: Variants, causes: Iterable[str]) -> float:
    """Returns the expected window (ns) of `now` with the fixes of all `causes` added; infinity if one of these fixes
    cannot be simulated."""
    graph: ModifiedGraph | None = now.expected
    for cause in causes:
        graph = scenarios()[cause].apply(graph, Estimate.EXPECTED) if graph is not None else None
    return graph.window() if graph is not None else float("inf")
