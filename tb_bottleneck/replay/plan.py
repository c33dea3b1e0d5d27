"""The plan: which cure first, and how much faster after each, simulated over the recording.

The best cure is applied, then the recording with it is simulated again with each that is left: two cures that free the
same time do not add up. The plan ends where the next cure would bring less than WORTH_DOING.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.replay.check import Check
from tb_bottleneck.replay.host_scale import HostScales, host_scaled, scales_of
from tb_bottleneck.replay.modified_graph import Case, Facts, World, recorded_world
from tb_bottleneck.replay.run_to_run_noise import NOISE
from tb_bottleneck.replay.scenarios.registry import SCENARIO_OF
from tb_bottleneck.replay.scenarios.scenario import Scenario

# A cure that brings less than this share of the step that is left is lost in the noise between two runs of one training
# (a few percent from run to run).
WORTH_DOING = 0.02


@dataclass(frozen=True)
class Gain:
    """Step time before over step time after: what is expected, and between which bounds."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class PlanStep:
    """A cure, and what it comes to together with those before it: the gain in all, and what the recorded step would
    take with it, in ns."""

    cause: str
    scenario: str
    step_ns: float
    total: Gain


@dataclass(frozen=True)
class Prediction:
    """What the replay says of one recording: the check, gains of single cures by cause, and the plan.

    Without trust in the replay, or without a scenario for any cause, gains and plan are empty.
    """

    check: Check
    gains: Mapping[str, Gain]
    plan: tuple[PlanStep, ...]
    scales: HostScales | None  # None where nothing was predicted


@dataclass(frozen=True, eq=False)
class _Worlds:
    """The same recording with the same cures, the expected one first: cures and host speed working out differently."""

    worlds: tuple[World, ...]
    cases: tuple[Case, ...]

    @property
    def expected(self) -> World:
        return self.worlds[0]

    def cured(self, scenario: Scenario) -> "_Worlds | None":
        worlds = [scenario.cure(world, case) for world, case in zip(self.worlds, self.cases, strict=True)]
        found = tuple(world for world in worlds if world is not None)
        return _Worlds(found, self.cases) if len(found) == len(self.cases) else None

    def windows(self) -> tuple[float, ...]:
        return tuple(world.window() for world in self.worlds)


def predict(recording: Recording, causes: Iterable[str]) -> Prediction:
    """The gains of curing these causes, dearest first or in any order. Causes without a scenario are left out."""
    facts = Facts(recording)
    known = [cause for cause in causes if _applies(cause, recording)]
    if not facts.check.trusted:
        return Prediction(facts.check, {}, (), None)
    world = recorded_world(facts)
    scales = scales_of(world)
    start = _starting(world, scales)
    windows = start.windows()
    cured = {
        name: start.cured(scenario) for name, scenario in {SCENARIO_OF[c].name: SCENARIO_OF[c] for c in known}.items()
    }
    gains_of = {name: _gain(windows, worlds.windows()) for name, worlds in cured.items() if worlds is not None}
    gains = {cause: gains_of[SCENARIO_OF[cause].name] for cause in known if SCENARIO_OF[cause].name in gains_of}
    return Prediction(facts.check, gains, tuple(_greedy(start, cured, list(gains))), scales)


def _applies(cause: str, recording: Recording) -> bool:
    return cause in SCENARIO_OF and (recording.on_device or SCENARIO_OF[cause].on_cpu)


def _starting(world: World, scales: HostScales) -> _Worlds:
    """The uncured worlds: each bound of the cures at each bound of the host's speed, as far as these differ."""
    pairs = dict.fromkeys(
        [
            (scales.expected, Case.EXPECTED),
            *((scale, case) for scale in (scales.least, scales.most) for case in (Case.LOW, Case.HIGH)),
        ]
    )
    return _Worlds(tuple(host_scaled(world, scale) for scale, _ in pairs), tuple(case for _, case in pairs))


def _greedy(start: _Worlds, cured: Mapping[str, _Worlds | None], causes: list[str]) -> Iterable[PlanStep]:
    """Cures one after the other, the best first; `cured` are the start's worlds with each of them, by scenario."""
    first = start.windows()
    recording = start.expected.facts.recording
    step_ns = recording.account.window / len(recording.steps)
    now, left = start, {SCENARIO_OF[cause].name: cause for cause in reversed(causes)}
    while left:
        before = now.expected.window()
        alone = cured if now is start else {}
        after = {cause: _expected(now, alone.get(name), cause) for name, cause in left.items()}
        best = min(after, key=lambda cause: after[cause])
        if before - after[best] < WORTH_DOING * before:
            return
        worlds = alone.get(SCENARIO_OF[best].name) or now.cured(SCENARIO_OF[best])
        if worlds is None:
            return
        windows = worlds.windows()
        total = _gain(first, windows)
        yield PlanStep(best, SCENARIO_OF[best].name, step_ns / total.expected, total)
        now, left = worlds, {name: cause for name, cause in left.items() if cause != best}


def _expected(now: _Worlds, cured: _Worlds | None, cause: str) -> float:
    """The window after one more cure, which `cured` holds where it was tried already; for ever where it cannot be."""
    world = SCENARIO_OF[cause].cure(now.expected, Case.EXPECTED) if cured is None else cured.expected
    return world.window() if world is not None else float("inf")


def _gain(before: tuple[float, ...], after: tuple[float, ...]) -> Gain:
    """Never below one: whoever sees a cure do harm undoes it."""
    ratios = [b / max(a, 1.0) for b, a in zip(before, after, strict=True)]
    low, high = min(ratios) / (1 + NOISE), max(ratios) * (1 + NOISE)
    return Gain(*(max(ratio, 1.0) for ratio in (ratios[0], low, high)))
