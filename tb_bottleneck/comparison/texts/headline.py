"""The sentence that a person would say of a comparison."""

from collections.abc import Sequence
from math import log

from tb_bottleneck.comparison.devices.device_model import with_article
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.comparison.texts.speedup import (
    RELEVANT_CHANGE,
    SAME_SPEED_WITHIN,
    ratio_text,
    speedup_range_text,
    speedup_text,
    time_text,
)
from tb_bottleneck.comparison.waterfall import largest
from tb_bottleneck.comparison.workload.similarity import SAME_WORK_FROM
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.regime import Regime
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.units import duration_text, share_text

# A regime that makes up this much of the difference is what it is about; below it, several are.
MAIN_CHANGE_FROM, WHOLE_CHANGE_FROM = 0.5, 0.95
# Beside the first regime those are named that make up this much of the difference.
NAMED_CHANGE_FROM = 0.25
# Where a regime makes up this much more than the whole, another one has taken some of it back.
OPPOSITE_CHANGE_FROM = 0.1
# A promise that was missed by less than this was kept: predictions of this kind are no better.
PREDICTION_TOLERANCE = 0.05
# What the host does and no device changes. From this share of the step on it is named, where the step changes by less
# than this part of what its kernels do, as logarithms.
HOST_REGIMES = (Regime.INPUT, Regime.SYNC, Regime.LAUNCH, Regime.HOST, Regime.ALLOCATOR, Regime.INTERRUPTION)
LIMITING_SHARE_FROM, LIMITED_BELOW = 0.25, 0.5


def refusal_headline(reasons: Sequence[str]) -> str:
    """Why there is no comparison."""
    return headline_text("refused").safe_substitute(because=" ".join(reasons[:2]))


Unprofiled = tuple[float | None, float | None]


def headline_of(
    told: pb.Comparison,
    alike: float = 1.0,
    device: str | None = None,
    unprofiled: Unprofiled = (None, None),
    ranks: tuple[int, int] | None = None,
) -> str:
    """What differs, by how much, and where; then what the other device promised, where it is another one.

    `unprofiled` are both sides' times in ns while nothing was recorded, where that was measured; `ranks` are both jobs'
    where they differ.
    """
    sentence = _difference(told)
    if alike < SAME_WORK_FROM:
        return headline_text("unlike").safe_substitute(alike=share_text(alike)) + sentence
    # A few long steps move the mean beyond its interval, and no test of all steps: where they lie is worth saying.
    beyond = abs(told.speedup - 1) > told.noise * told.speedup
    if told.significant or min(told.a_steps, told.b_steps) < MIN_COMPARED_STEPS:
        sentence += _where(told)
    elif beyond:
        sentence += _lies(told)
    if told.significant and max(told.speedup, 1 / told.speedup) < 1 + RELEVANT_CHANGE:
        sentence += headline_text("small").safe_substitute()
    sentence += _unprofiled(told, *unprofiled) + _together(told, ranks)
    return sentence + (_promised(told, device) if device is not None else "")


def _together(told: pb.Comparison, ranks: tuple[int, int] | None) -> str:
    """What jobs of different size get through: a step of one rank says nothing of the others."""
    if ranks is None:
        return ""
    together = told.speedup * ranks[1] / ranks[0]
    said = {"a_ranks": ranks[0], "b_ranks": ranks[1], "together": f"{ratio_text(together)} times"}
    return headline_text("ranks").safe_substitute(said)


def _difference(told: pb.Comparison) -> str:
    said = {
        "a": "A",
        "b": "B",
        "per": told.per,
        "a_time": duration_text(told.a_ns),
        "b_time": duration_text(told.b_ns),
        "test": told.test.rstrip("."),
    }
    if min(told.a_steps, told.b_steps) < MIN_COMPARED_STEPS:
        test = told.test[:1].lower() + told.test[1:]
        return headline_text("alone").safe_substitute(said, test=test, pace=_pace(told.speedup))
    if not told.significant:
        return headline_text("same").safe_substitute(said)
    word, ratio = ("faster", told.speedup) if told.speedup >= 1 else ("slower", 1 / told.speedup)
    return headline_text(word).safe_substitute(said, ratio=ratio_text(ratio))


def _pace(speedup: float) -> str:
    """A ratio that no test backs, in the words of those that one does."""
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return "about as long"
    return f"{ratio_text(speedup)} times as fast" if speedup >= 1 else f"{ratio_text(1 / speedup)} times as long"


def _where(told: pb.Comparison) -> str:
    """The regime that makes most of the difference; or the one that grew most, where others outweigh it."""
    whole = told.b_ns - told.a_ns
    if not whole:
        return ""
    sign = 1.0 if whole > 0 else -1.0
    bars = sorted(told.by_regime, key=lambda bar: -sign * bar.delta_ns)
    part = bars[0].delta_ns / whole
    if part < MAIN_CHANGE_FROM:
        return headline_text("beside").safe_substitute(_moved(bars[0]))
    large = [bar for bar in bars if bar.delta_ns / whole >= NAMED_CHANGE_FROM]
    what = " and ".join(headline_text("moved").safe_substitute(_moved(bar)) for bar in large)
    together = sum(bar.delta_ns for bar in large) / whole
    sentence = headline_text("mostly").safe_substitute(
        most="All" if together > WHOLE_CHANGE_FROM else "Most", what=what
    )
    against = largest(list(told.by_regime), -sign)
    if together <= 1 + OPPOSITE_CHANGE_FROM:
        return sentence
    return sentence + headline_text("against").safe_substitute(_moved(against))


def _unprofiled(told: pb.Comparison, a_ns: float | None, b_ns: float | None) -> str:
    """The difference without the profiler, where it is another one than the recorded, for the profiler lengthens steps;
    or where there is one, and the recorded steps do not tell."""
    if a_ns is None or b_ns is None:
        return ""
    other = abs(a_ns / b_ns / told.speedup - 1) >= max(told.noise, PREDICTION_TOLERANCE)
    untold = not told.significant and max(a_ns / b_ns, b_ns / a_ns) >= 1 + RELEVANT_CHANGE
    if not other and not untold:
        return ""
    said = {"pace": speedup_text(a_ns / b_ns), "a_time": duration_text(a_ns), "b_time": duration_text(b_ns)}
    return headline_text("unprofiled").safe_substitute(said, per=told.per)


def _lies(told: pb.Comparison) -> str:
    """Of a difference that is beyond the interval of the means, and that not all steps share: where it lies."""
    whole = told.b_ns - told.a_ns
    bar = max(told.by_regime, key=lambda one: one.delta_ns / whole)
    return headline_text("lies").safe_substitute(what=headline_text("moved").safe_substitute(_moved(bar)))


def _moved(bar: pb.RegimeDelta) -> dict[str, str]:
    before, after = (time_text(ns) for ns in (bar.a_ns, bar.b_ns))
    return {"title": _title(bar), "from": before, "to": after}


def _title(bar: pb.RegimeDelta) -> str:
    return bar.title[:1].lower() + bar.title[1:]


def _promised(told: pb.Comparison, device: str) -> str:
    """What the device promised, and the largest part of what it did not keep."""
    expected = told.expected
    sentence = headline_text("promise").safe_substitute(
        device=with_article(device),
        speedup_range_text=speedup_range_text(expected.speedup, expected.low, expected.high),
        kernels=speedup_text(expected.kernels_speedup),
    ) + _held(expected)
    missing = (told.b_ns - expected.b_ns) / told.b_ns
    if abs(missing) < PREDICTION_TOLERANCE:
        return sentence + headline_text("kept").safe_substitute()
    if abs(missing) < told.noise:
        return sentence + headline_text("kept_in_noise").safe_substitute()
    sign = 1 if missing > 0 else -1
    part = max(expected.shortfall, key=lambda one: sign * one.share)
    if expected.low <= told.speedup <= expected.high:
        word = "short_within" if missing > 0 and part.cause != "unexplained" else "kept_within"
        said = {"pace": speedup_text(told.speedup), "because": part.because}
        return sentence + headline_text(word).safe_substitute(said)
    word = "remainder" if missing > 0 else "better"
    if part.cause == "unexplained":
        word = {"remainder": "unnamed", "better": "better_unnamed"}[word]
    return sentence + headline_text(word).safe_substitute(because=part.because)


def _held(expected: pb.Expected) -> str:
    """What keeps a step from changing as its kernels do; empty where nothing does."""
    owners = [row for row in expected.by_regime if row.regime in HOST_REGIMES]
    largest_one = max(owners, key=lambda row: row.expected_ns)
    share = largest_one.expected_ns / expected.b_ns
    if share < LIMITING_SHARE_FROM or abs(log(expected.speedup)) > abs(log(expected.kernels_speedup)) * LIMITED_BELOW:
        return ""
    title = Regime(largest_one.regime).label
    return headline_text("held").safe_substitute(title=title, share=share_text(share))
