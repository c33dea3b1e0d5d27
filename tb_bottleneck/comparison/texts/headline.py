"""Builds the headline of a comparison: the difference, the regimes responsible, and the expected speedup."""

from collections.abc import Sequence
from math import log

from tb_bottleneck.base.regime import Owner, Regime
from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.comparison.devices.device_rates import with_article
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.comparison.texts.value_text import (
    RELEVANT_CHANGE,
    SAME_SPEED_WITHIN,
    ratio_text,
    speedup_range_text,
    speedup_text,
    time_text,
)
from tb_bottleneck.comparison.workload.similarity import WEIGHTS, Similarity
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.schema import comparison_pb2 as pb

# A regime is the main part of a difference if it has at least the first share of it; without such a regime, the
# difference is spread over several. From the second share on, the named regimes are "all" of the difference.
MAIN_CHANGE_FROM, WHOLE_CHANGE_FROM = 0.5, 0.95
# Further regimes are named from this share of the difference on.
NAMED_CHANGE_FROM = 0.25
# If the named regimes exceed the whole difference by more than this share of it, the regime that changed most in the
# opposite direction is named, too.
OPPOSITE_CHANGE_FROM = 0.1
# If the measured time deviates from the expected time by a smaller share, the prediction counts as correct; predictions
# of this kind are not more accurate.
PREDICTION_TOLERANCE = 0.05
# Smallest factors between the recorded speedup and the speedup without a profiler for which the headline states that
# they disagree. They differ because recording lengthens the host time of both runs. Both factors are chosen, without an
# outside source: of 16 pairs of the demo, 12 differ by a factor of at most 1.45, and four by 1.97 or more, where one
# recording has the defect `atypical_steps`. If also the result differs (faster, slower or none), a smaller factor is
# enough.
OTHER_SPEEDUP_FROM, OTHER_RESULT_FROM = 1.5, 1.25
# A host regime is named as the limit from this share of the step on, if the step's change is less than LIMITED_BELOW of
# the kernels' change (both as logarithms).
LIMITING_SHARE_FROM, LIMITED_BELOW = 0.25, 0.5


_UNPROFILED = {
    "faster": "unprofiled_faster",
    "slower": "unprofiled_slower",
    "none": "unprofiled_none",
    "unknown": "unprofiled_unknown",
}
"""Maps the difference of steps without a profiler to the name of its text."""


_WHOLE = {"faster": "whole_faster", "slower": "whole_slower", "none": "whole_none"}
"""Maps the difference of whole runs to the name of its text."""


def refusal_headline(reasons: Sequence[str]) -> str:
    """Returns the headline of a comparison that was not possible, with the first two of `reasons`, which are
    sentences."""
    return headline_text("refused").safe_substitute(because=" ".join(reasons[:2]))


def headline_of(
    comparison: pb.Comparison,
    device: str | None = None,
    ranks: tuple[int, int] | None = None,
    means: Sequence[pb.RegimeDelta] = (),
) -> str:
    """Returns the headline: the difference, the regimes responsible, and the expected speedup if the devices differ.

    The difference of the whole runs comes first, or else that of steps without a profiler. If the runs do different
    work, the headline only states their times. `device` is the name of B's device if `comparison` has an expected time.
    `ranks` are the numbers of ranks of A and B if they differ, otherwise None. `means` has the changes of the mean time
    by regime.
    """
    if not may_be_same_work(comparison):
        return _unlike(comparison)
    sentence = _whole_runs(comparison) or _without_profiler(comparison)
    # One ratio is enough, unless the recorded steps disagree with it.
    if not sentence:
        sentence = _difference(comparison)
    elif _recorded_disagree(comparison):
        sentence += headline_text("recorded_disagree").safe_substitute() + _difference(comparison)
    # If the test is not significant because the steps overlap too much, but the medians differ by more than the noise,
    # the main regime is named with this restriction.
    beyond = abs(comparison.speedup - 1) > comparison.noise * comparison.speedup
    if comparison.significant or min(comparison.a_steps, comparison.b_steps) < MIN_COMPARED_STEPS:
        sentence += _where(comparison.by_regime)
    elif beyond and not comparison.by_means:
        sentence += _where_if_real(comparison)
    sentence += _batches(comparison)
    if comparison.significant and max(comparison.speedup, 1 / comparison.speedup) < 1 + RELEVANT_CHANGE:
        sentence += headline_text("small").safe_substitute()
    if comparison.by_means:
        mean = comparison.mean_speedup
        name, ratio = ("means_faster", mean) if mean > 1 else ("means_slower", 1 / mean)
        sentence += headline_text(name).safe_substitute(ratio=ratio_text(ratio)) + _where(means)
    sentence += _job_throughput(comparison, ranks)
    return sentence + (_expected(comparison, device) if device is not None else "")


def _unlike(comparison: pb.Comparison) -> str:
    """Returns a sentence with the times of two runs that do different work, without a ratio, which would be
    misleading."""
    measured = comparison.similarity
    times = comparison.unprofiled if comparison.HasField("unprofiled") else comparison
    return headline_text("unlike").safe_substitute(
        similarity=share_text(measured.share),
        limit=share_text(Similarity(measured.share, measured.basis).least),
        what="products with weights of the same shape" if measured.basis == WEIGHTS else measured.basis,
        a_time=duration_text(times.a_ns),
        b_time=duration_text(times.b_ns),
        per=comparison.per,
    )


def _batches(comparison: pb.Comparison) -> str:
    """Returns a text with the samples per step of both runs if times are per sample, otherwise an empty text."""
    if comparison.per != "sample":
        return ""
    a, b = comparison.a_batch.samples, comparison.b_batch.samples
    return headline_text("batches").safe_substitute(a_samples=f"{a:,.0f}", b_samples=f"{b:,.0f}", ratio=f"{b / a:.3g}")


def may_be_same_work(comparison: pb.Comparison) -> bool:
    """Returns True unless the runs are known to do different work."""
    return comparison.similarity.same_work or not comparison.HasField("similarity")


def _job_throughput(comparison: pb.Comparison, ranks: tuple[int, int] | None) -> str:
    """Returns a text that compares the throughput of jobs with different numbers of ranks, `ranks` (A, B); empty if
    `ranks` is None."""
    if ranks is None:
        return ""
    throughput = f"{ratio_text(comparison.speedup * ranks[1] / ranks[0])} times"
    return headline_text("ranks").safe_substitute(a_ranks=ranks[0], b_ranks=ranks[1], throughput=throughput)


def _difference(comparison: pb.Comparison) -> str:
    """Returns a sentence about the difference of the median times of the recorded steps, with the result of its
    test."""
    values = {
        "a": "A",
        "b": "B",
        "per": comparison.per,
        "a_time": duration_text(comparison.a_ns),
        "b_time": duration_text(comparison.b_ns),
        "test": comparison.test.rstrip("."),
    }
    if min(comparison.a_steps, comparison.b_steps) < MIN_COMPARED_STEPS:
        test = comparison.test[:1].lower() + comparison.test[1:]
        return headline_text("untested").safe_substitute(values, test=test, ratio=_ratio(comparison.speedup))
    if not comparison.significant:
        return headline_text("same_typical" if comparison.by_means else "same").safe_substitute(values)
    speedup = comparison.speedup
    name, ratio = ("faster", speedup) if speedup >= 1 else ("slower", 1 / speedup)
    return headline_text(name).safe_substitute(values, ratio=ratio_text(ratio))


def _ratio(speedup: float) -> str:
    """Formats a speedup that could not be tested, as in "B is 1.50 times as fast"."""
    if abs(speedup - 1) < SAME_SPEED_WITHIN:
        return "about as long"
    return (
        f"B is {ratio_text(speedup)} times as fast" if speedup >= 1 else f"A is {ratio_text(1 / speedup)} times as fast"
    )


def _where(changes: Sequence[pb.RegimeDelta]) -> str:
    """Returns a text that names the regimes with most of the difference, and the regime that changed most in the
    opposite direction, if the named regimes exceed the whole difference by more than OPPOSITE_CHANGE_FROM. `changes`
    has one row per regime."""
    whole = sum(row.delta_ns for row in changes)
    if not whole:
        return ""
    sign = 1.0 if whole > 0 else -1.0
    rows = sorted(changes, key=lambda row: -sign * row.delta_ns)
    if rows[0].delta_ns / whole < MAIN_CHANGE_FROM:
        return headline_text("spread").safe_substitute(_change(rows[0]))
    large = [row for row in rows if row.delta_ns / whole >= NAMED_CHANGE_FROM]
    what = " and ".join(headline_text("change").safe_substitute(_change(row)) for row in large)
    share = sum(row.delta_ns for row in large) / whole
    amount = "All" if share > WHOLE_CHANGE_FROM else "Most"
    sentence = headline_text("mostly").safe_substitute(most=amount, what=what)
    if share <= 1 + OPPOSITE_CHANGE_FROM:
        return sentence
    opposite = max(changes, key=lambda row: -sign * row.delta_ns)
    return sentence + headline_text("opposite").safe_substitute(_change(opposite))


def _without_profiler(comparison: pb.Comparison) -> str:
    """Returns a text about the difference of steps without a profiler; empty if a run did not measure such steps."""
    if not comparison.HasField("unprofiled"):
        return ""
    measured = comparison.unprofiled
    times = {"a_time": duration_text(measured.a_ns), "b_time": duration_text(measured.b_ns), "per": comparison.per}
    ratio = ratio_text(max(measured.speedup, 1 / measured.speedup))
    return headline_text(_UNPROFILED[measured.difference]).safe_substitute(
        times, ratio=ratio, test=measured.test.rstrip(".")
    )


def _whole_runs(comparison: pb.Comparison) -> str:
    """Returns a text about the mean steps of the whole runs; empty if the monitor did not time the steps of both.

    The monitor measures only a few steps without the profiler, directly before a trace. Only the whole runs contain
    pauses in other steps.
    """
    if not comparison.HasField("run"):
        return ""
    run, per = comparison.run, comparison.per
    power = -1 if run.speedup < 1 else 1  # of the faster run
    low, ratio, high = sorted(each**power for each in (run.low, run.speedup, run.high))
    return headline_text(_WHOLE[run.difference]).safe_substitute(
        ratio=ratio_text(ratio),
        low=ratio_text(low),
        high=ratio_text(high),
        per=per,
        a_time=duration_text(run.a_ns),
        b_time=duration_text(run.b_ns),
        a_steps=f"{run.a_steps:,}",
        b_steps=f"{run.b_steps:,}",
    )


def _recorded_disagree(comparison: pb.Comparison) -> bool:
    """Returns True if the recorded speedup differs from the speedup without a profiler by more than the factor
    OTHER_SPEEDUP_FROM or, if the result (faster, slower or none) is another one, by more than OTHER_RESULT_FROM."""
    unprofiled = comparison.run if comparison.HasField("run") else comparison.unprofiled
    distance = abs(log(unprofiled.speedup / comparison.speedup))
    other_result = unprofiled.difference != comparison.difference and "unknown" not in (
        unprofiled.difference,
        comparison.difference,
    )
    return distance > log(OTHER_SPEEDUP_FROM) or (other_result and distance > log(OTHER_RESULT_FROM))


def _where_if_real(comparison: pb.Comparison) -> str:
    """Returns a text with the main regime of a difference that exceeds the noise, but is not significant."""
    whole = comparison.b_ns - comparison.a_ns
    main = max(comparison.by_regime, key=lambda row: row.delta_ns / whole)
    change = headline_text("change").safe_substitute(_change(main))
    return headline_text("where_if_real").safe_substitute(what=change)


def _change(row: pb.RegimeDelta) -> dict[str, str]:
    """Returns the values of the placeholders in a text about the change of one regime."""
    title = row.title if row.title.startswith("Python") else row.title[:1].lower() + row.title[1:]
    return {"title": title, "from": time_text(row.a_ns), "to": time_text(row.b_ns)}


def _expected(comparison: pb.Comparison, device: str) -> str:
    """Returns a text with the expected speedup on `device`, B's device, and the largest part of the shortfall (B's
    measured time minus its expected time)."""
    expected = comparison.expected
    sentence = headline_text("expected").safe_substitute(
        device=with_article(device),
        speedup=speedup_range_text(expected.speedup, expected.low, expected.high),
        kernels=speedup_text(expected.kernels_speedup),
    ) + _limited_by(expected)
    missing = (comparison.b_ns - expected.b_ns) / comparison.b_ns
    if abs(missing) < PREDICTION_TOLERANCE:
        return sentence + headline_text("as_expected").safe_substitute()
    if abs(missing) < comparison.noise:
        return sentence + headline_text("expected_in_noise").safe_substitute()
    sign = 1 if missing > 0 else -1
    part = max(expected.shortfall, key=lambda row: sign * row.share)
    is_known = part.cause != "unexplained"
    if expected.low <= comparison.speedup <= expected.high:
        text = headline_text("below_within" if missing > 0 and is_known else "within")
        return sentence + text.safe_substitute(speedup=speedup_text(comparison.speedup), because=part.because)
    if missing > 0:
        name = "shortfall" if is_known else "shortfall_unknown"
    else:
        name = "better" if is_known else "better_unknown"
    return sentence + headline_text(name).safe_substitute(because=part.because)


def _limited_by(expected: pb.Expected) -> str:
    """Returns a text with the host regime that limits the expected speedup, because it has a large share of the
    expected time, and the step gains much less than the kernels; empty if there is none."""
    host = [row for row in expected.by_regime if Regime(row.regime).owner is Owner.HOST]
    largest = max(host, key=lambda row: row.expected_ns)
    share = largest.expected_ns / expected.b_ns
    if share < LIMITING_SHARE_FROM or abs(log(expected.speedup)) > abs(log(expected.kernels_speedup)) * LIMITED_BELOW:
        return ""
    return headline_text("limited").safe_substitute(title=Regime(largest.regime).label, share=share_text(share))
