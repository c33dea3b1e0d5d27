"""Comparisons, predictions and series as text for a terminal."""

import textwrap
from collections.abc import Iterable, Iterator

from tb_bottleneck.comparison.series.varying_setting import DIFFERENT_WORK
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.comparison.texts.speedup import ratio_text, speedup_range_text, speedup_text, time_text
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.units import duration_text, share_text

LINE_WIDTH = 100
BAR_WIDTH = 24
# Bars shorter than this share of the longer side are left out.
MIN_SHOWN_SHARE = 0.005


def render_comparison(told: pb.Comparison) -> str:
    """The whole comparison, plain text."""
    return _joined(_comparison(told))


def render_what_if(told: pb.WhatIf) -> str:
    """The whole prediction, plain text."""
    return _joined(_what_if(told))


def render_series(told: pb.RunSeries) -> str:
    """The whole series, plain text."""
    return _joined(_series(told))


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _comparison(told: pb.Comparison) -> Iterator[str]:
    yield f"A: {told.a}"
    yield f"B: {told.b}"
    yield "─" * 72
    yield from _wrapped(told.headline)
    if told.comparable:
        if min(told.a_steps, told.b_steps) >= MIN_COMPARED_STEPS:
            test = f" {told.test}" if told.significant else ""  # else the headline says it
            yield from _wrapped(
                f"Speedup {ratio_text(told.speedup)}, ± {share_text(told.noise)} by the steps' spread.{test}"
            )
        yield from _waterfall(list(told.by_regime), f"From A to B, time per {told.per}", told.a_ns, told.b_ns)
        yield from _expected(told)
        yield from _causes(told)
        yield from _context(told)
    yield from _notes(told.notes, told.headline)


def _waterfall(
    bars: list[pb.RegimeDelta], title: str, a_ns: float, b_ns: float, runs: tuple[str, str] = ("A", "B")
) -> Iterator[str]:
    """The bars that are long enough, largest change first, then both sums."""
    longest = max(a_ns, b_ns)
    shown = [bar for bar in bars if max(bar.a_ns, bar.b_ns) >= MIN_SHOWN_SHARE * longest]
    scale = max((abs(bar.delta_ns) for bar in shown), default=1.0) or 1.0
    width = max((len(bar.title) for bar in shown), default=0)
    yield ""
    yield title
    yield f"  {'':{width}}  {runs[0]:>9}  {runs[1]:>9}  {'change':>10}"
    for bar in sorted(shown, key=lambda bar: -abs(bar.delta_ns)):
        drawn = ("+" if bar.delta_ns > 0 else "-") * round(abs(bar.delta_ns) / scale * BAR_WIDTH)
        yield f"  {bar.title:{width}}  {_time(bar.a_ns)}  {_time(bar.b_ns)}  {_change(bar.delta_ns)}  {drawn}".rstrip()
    left = b_ns - a_ns - sum(bar.delta_ns for bar in shown)
    if abs(left) >= MIN_SHOWN_SHARE * longest:
        yield f"  {'all others':{width}}  {'':>9}  {'':>9}  {_change(left)}"
    yield f"  {'whole':{width}}  {_time(a_ns)}  {_time(b_ns)}  {_change(b_ns - a_ns)}"


def _time(ns: float) -> str:
    return f"{duration_text(ns) if ns else '-':>9}"


def _change(ns: float) -> str:
    whole = round(ns)
    return f"{('+' if whole > 0 else '-') + duration_text(abs(whole)) if whole else '-':>10}"


def _expected(told: pb.Comparison) -> Iterator[str]:
    if not told.HasField("expected"):
        return
    expected = told.expected
    yield ""
    yield f"What B's device promises for the work that A does (by {_basis(expected.basis)})"
    yield from _wrapped(
        f"{speedup_range_text(expected.speedup, expected.low, expected.high)}: "
        f"{duration_text(expected.b_ns)} per {told.per}, measured {duration_text(told.b_ns)}; "
        f"the kernels alone {speedup_text(expected.kernels_speedup)}",
        "  ",
    )
    measured = {bar.regime: bar for bar in told.by_regime}
    for row in expected.by_regime:
        bar = measured[row.regime]
        if max(row.expected_ns, bar.a_ns, bar.b_ns) >= MIN_SHOWN_SHARE * max(told.a_ns, told.b_ns):
            times = f"{time_text(bar.a_ns)} → {time_text(row.expected_ns)}, measured {time_text(bar.b_ns)}"
            yield from _wrapped(f"- {bar.title}: {times}; {row.because}", "  ")
    yield ""
    yield "Measured minus promised, of B's time"
    for part in expected.shortfall:
        yield from _wrapped(f"{_signed(part.share):>6}  {part.cause}: {part.because}", "  ")
    yield from _listed("Assumed", expected.assumptions)


def _basis(basis: str) -> str:
    return "replaying A with B's device times" if basis == "replay" else "the account of A alone"


def _signed(share: float) -> str:
    return ("+" if share >= 0 else "-") + share_text(abs(share))


def _causes(told: pb.Comparison) -> Iterator[str]:
    if told.causes.gained or told.causes.lost:
        yield ""
    if told.causes.gained:
        yield from _wrapped(f"Causes found in B and not in A: {', '.join(told.causes.gained)}")
    if told.causes.lost:
        yield from _wrapped(f"Causes found in A and not in B: {', '.join(told.causes.lost)}")


def _context(told: pb.Comparison) -> Iterator[str]:
    if not told.context:
        return
    yield ""
    yield "What differs around them"
    for row in told.context:
        yield from _wrapped(f"- {row.title}: {row.a} → {row.b}", "  ")


def _what_if(told: pb.WhatIf) -> Iterator[str]:
    yield f"{told.run}, if {' and '.join(told.changes)}" if told.changes else told.run
    yield "─" * 72
    yield from _wrapped(told.headline)
    if told.HasField("after"):
        after = told.after
        title = f"From the recording to what is expected, time per {told.per}, by {told.basis}"
        if any(round(bar.delta_ns) for bar in told.by_regime):
            yield from _waterfall(list(told.by_regime), title, told.step_ns, after.step_ns, ("now", "then"))
    if told.fix_first:
        yield ""
        yield "Mend first, so that the change is not wasted"
        for fix in told.fix_first:
            yield f"  - {fix.title} [{fix.cause}]: {share_text(fix.share)} of the step then"
    yield from _listed("Assumed", told.assumptions)
    yield from _notes(told.notes, told.headline)


def _series(told: pb.RunSeries) -> Iterator[str]:
    yield from _wrapped(told.headline)
    if told.points and told.kind == DIFFERENT_WORK:
        yield ""
        yield from (f"  {duration_text(point.ns)} per {told.per}: {point.value}" for point in told.points)
    elif told.points:
        yield ""
        longest = max(point.ns for point in told.points)
        width = max(len(point.value) for point in told.points)
        yield f"  {told.varies:{max(width, len(told.varies))}}  time per {told.per}"
        for point in told.points:
            bar = "█" * max(round(point.ns / longest * BAR_WIDTH), 1)
            spread = f"({duration_text(point.low_ns)} to {duration_text(point.high_ns)})"
            spread = spread if point.steps >= MIN_COMPARED_STEPS else "(one step)"
            shown = f"{point.value:{max(width, len(told.varies))}}  {_time(point.ns)}  {bar:{BAR_WIDTH}}"
            yield f"  {shown}  {ratio_text(point.speedup)}x  {point.regime}  {spread}"
    if told.HasField("knee"):
        yield from _wrapped(f"Knee: {told.knee.because}")
    yield from _listed("To keep in mind", told.notes)


def _notes(notes: Iterable[str], headline: str) -> Iterator[str]:
    """What the headline does not say already."""
    yield from _listed("To keep in mind", (note for note in notes if note not in headline))


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield ""
        yield title
        for line in found:
            yield from _wrapped(f"- {line}", "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent + ("  " if indent else ""))
