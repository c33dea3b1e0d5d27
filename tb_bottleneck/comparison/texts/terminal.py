"""Renders comparisons, predictions and series as plain text for a terminal."""

from collections.abc import Iterable, Iterator

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.comparison.series.explanations import DIFFERENT_WORK
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.comparison.texts.headline import may_be_same_work
from tb_bottleneck.comparison.texts.value_text import ratio_text, speedup_range_text, speedup_text, time_text
from tb_bottleneck.report.rendering.layout import RULE, Layout, Line
from tb_bottleneck.schema import comparison_pb2 as pb

BAR_WIDTH = 12  # with the longest label, a row has 80 characters
# Rows with a smaller share of the longer run are left out.
MIN_SHOWN_SHARE = 0.005


def render_comparison(comparison: pb.Comparison, layout: Layout | None = None) -> str:
    """Returns the comparison as plain text. `layout` wraps and styles the lines; the default has no styles."""
    return (layout or Layout()).text(_comparison(comparison))


def render_what_if(prediction: pb.WhatIf, layout: Layout | None = None) -> str:
    """Returns the prediction as plain text (see render_comparison)."""
    return (layout or Layout()).text(_what_if(prediction))


def render_what_if_table(table: pb.WhatIfTable, layout: Layout | None = None) -> str:
    """Returns the table of predictions as plain text (see render_comparison)."""
    return (layout or Layout()).text(_what_if_table(table))


def render_series(series: pb.RunSeries, layout: Layout | None = None) -> str:
    """Returns the series of runs as plain text (see render_comparison)."""
    return (layout or Layout()).text(_series(series))


def _comparison(comparison: pb.Comparison) -> Iterator[str]:
    yield f"A: {comparison.a}"
    yield f"B: {comparison.b}"
    yield RULE
    yield Line(comparison.headline, "strong")
    if comparison.comparable:
        if may_be_same_work(comparison) and min(comparison.a_steps, comparison.b_steps) >= MIN_COMPARED_STEPS:
            test = f" {comparison.test}" if comparison.significant else ""  # otherwise it is in the headline
            name = "Recorded steps: speedup" if comparison.HasField("unprofiled") else "Speedup"
            interval = f"{ratio_text(comparison.speedup)} ± {share_text(comparison.noise)}"
            yield from _wrapped(f"{name} {interval} (variation of steps).{test}")
        yield from _waterfall(
            list(comparison.by_regime), f"From A to B, time per {comparison.per}", comparison.a_ns, comparison.b_ns
        )
        yield from _expected(comparison)
        yield from _causes(comparison)
        yield from _context(comparison)
    yield from _notes(comparison.notes, comparison.headline)


def _waterfall(
    bars: list[pb.RegimeDelta], title: str, a_ns: float, b_ns: float, runs: tuple[str, str] = ("A", "B")
) -> Iterator[str]:
    """Yields the lines of a table with one line per regime, largest change first, then the whole times.

    Regimes with less than MIN_SHOWN_SHARE of the longer time are left out. `bars` has the times of each regime, `title`
    is the heading. `a_ns` and `b_ns` are the whole times, `runs` the headings of their columns.
    """
    longest = max(a_ns, b_ns)
    shown = [bar for bar in bars if max(bar.a_ns, bar.b_ns) >= MIN_SHOWN_SHARE * longest]
    scale = max((abs(bar.delta_ns) for bar in shown), default=1.0) or 1.0
    width = max((len(bar.title) for bar in shown), default=0)
    yield ""
    yield title
    yield f"  {'':{width}}  {runs[0]:>9}  {runs[1]:>9}  {'change':>10}"
    for bar in sorted(shown, key=lambda bar: -abs(bar.delta_ns)):
        marks = ("+" if bar.delta_ns > 0 else "-") * round(abs(bar.delta_ns) / scale * BAR_WIDTH)
        yield f"  {bar.title:{width}}  {_time(bar.a_ns)}  {_time(bar.b_ns)}  {_change(bar.delta_ns)}  {marks}".rstrip()
    others = b_ns - a_ns - sum(bar.delta_ns for bar in shown)
    if abs(others) >= MIN_SHOWN_SHARE * longest:
        yield f"  {'all others':{width}}  {'':>9}  {'':>9}  {_change(others)}"
    yield f"  {'whole':{width}}  {_time(a_ns)}  {_time(b_ns)}  {_change(b_ns - a_ns)}"


def _time(ns: float) -> str:
    return f"{duration_text(ns) if ns else '-':>9}"


def _change(ns: float) -> str:
    whole = round(ns)
    return f"{('+' if whole > 0 else '-') + duration_text(abs(whole)) if whole else '-':>10}"


def _expected(comparison: pb.Comparison) -> Iterator[str]:
    if not comparison.HasField("expected"):
        return
    expected = comparison.expected
    yield ""
    yield "Expected time of A's work on B's device (by replay of A with B's device times)"
    yield from _wrapped(
        f"{speedup_range_text(expected.speedup, expected.low, expected.high)}: "
        f"{duration_text(expected.b_ns)} per {comparison.per}, measured {duration_text(comparison.b_ns)}; "
        f"the kernels alone {speedup_text(expected.kernels_speedup)}",
        "  ",
    )
    measured = {bar.regime: bar for bar in comparison.by_regime}
    for row in expected.by_regime:
        bar = measured[row.regime]
        if max(row.expected_ns, bar.a_ns, bar.b_ns) >= MIN_SHOWN_SHARE * max(comparison.a_ns, comparison.b_ns):
            times = f"{time_text(bar.a_ns)} → {time_text(row.expected_ns)}, measured {time_text(bar.b_ns)}"
            yield from _wrapped(f"- {bar.title}: {times}; {row.because}", "  ")
    yield ""
    yield "Measured minus expected time, share of B's time"
    for part in expected.shortfall:
        yield from _wrapped(f"{_signed(part.share):>6}  {part.cause}: {part.because}", "  ")
    yield from _listed("Assumed", expected.assumptions)


def _signed(share: float) -> str:
    """Formats a share with its sign, as in "+12 %"."""
    return ("+" if share >= 0 else "-") + share_text(abs(share))


def _causes(comparison: pb.Comparison) -> Iterator[str]:
    if comparison.causes.gained or comparison.causes.lost:
        yield ""
    if comparison.causes.gained:
        yield from _wrapped(f"Causes found in B and not in A: {', '.join(comparison.causes.gained)}")
    if comparison.causes.lost:
        yield from _wrapped(f"Causes found in A and not in B: {', '.join(comparison.causes.lost)}")


def _context(comparison: pb.Comparison) -> Iterator[str]:
    if not comparison.context:
        return
    yield ""
    yield "Environment differences"
    for row in comparison.context:
        yield from _wrapped(f"- {row.title}: {row.a} → {row.b}", "  ")


def _what_if(prediction: pb.WhatIf) -> Iterator[str]:
    yield f"{prediction.run}, if {' and '.join(prediction.changes)}" if prediction.changes else prediction.run
    yield RULE
    yield Line(prediction.headline, "strong")
    if prediction.HasField("after"):
        after = prediction.after
        title = f"From the recorded to the expected time per {prediction.per}, by replay"
        if any(round(bar.delta_ns) for bar in prediction.by_regime):
            yield from _waterfall(list(prediction.by_regime), title, prediction.step_ns, after.step_ns, ("now", "then"))
    if prediction.fix_first:
        yield ""
        yield "What still costs time after the change"
        for fix in prediction.fix_first:
            yield f"  - {fix.title} [{fix.cause}]: {share_text(fix.share)} of the step after the change"
    yield from _listed("Assumed", prediction.assumptions)
    yield from _notes(prediction.notes, prediction.headline)


def _what_if_table(table: pb.WhatIfTable) -> Iterator[str]:
    yield f"{table.run}, under other conditions" + (
        f": now {duration_text(table.step_ns)} per step" if table.rows else ""
    )
    yield RULE
    if table.rows:
        width = max(len(row.title) for row in table.rows)
        yield Line(f"  {'If it had':{width}}  {'Time':>9}         {'Speed':24} Then mostly", "strong")
    group = ""
    for row in table.rows:
        if group not in ("", row.group):
            yield ""
        group, after = row.group, row.after
        speed = f"{ratio_text(after.speedup)}x ({ratio_text(after.low)} to {ratio_text(after.high)})"
        regime = Regime(row.regime).label.lower()
        yield f"  {row.title:{width}}  {_time(after.step_ns)}/{row.per:6} {speed:24} {regime}{_memory(row)}"
    yield from _listed("Notes", table.notes)


def _memory(row: pb.WhatIfRow) -> str:
    if not row.HasField("memory"):
        return ""
    fits = ("; fits" if row.memory.fits else "; may not fit") if row.memory.HasField("fits") else ""
    return f", peak {bytes_text(row.memory.peak_bytes)}{fits}"


def _series(series: pb.RunSeries) -> Iterator[str]:
    yield Line(series.headline, "strong")
    if series.points and series.kind == DIFFERENT_WORK:
        yield ""
        yield from (f"  {duration_text(point.ns)} per {series.per}: {point.value}" for point in series.points)
    elif series.points:
        yield ""
        longest = max(point.ns for point in series.points)
        width = max(len(point.value) for point in series.points)
        yield f"  {series.varies:{max(width, len(series.varies))}}  time per {series.per}"
        for point in series.points:
            bar = "█" * max(round(point.ns / longest * BAR_WIDTH), 1)
            spread = f"({duration_text(point.low_ns)} to {duration_text(point.high_ns)})"
            spread = spread if point.steps >= MIN_COMPARED_STEPS else "(one step)"
            shown = f"{point.value:{max(width, len(series.varies))}}  {_time(point.ns)}  {bar:{BAR_WIDTH}}"
            yield f"  {shown}  {ratio_text(point.speedup)}x  {point.regime}  {spread}"
    yield from _listed("Notes", series.notes)


def _notes(notes: Iterable[str], headline: str) -> Iterator[str]:
    """Yields the lines of a list of the notes that the headline does not already contain."""
    yield from _listed("Notes", (note for note in notes if note not in headline))


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    items = list(lines)
    if items:
        yield ""
        yield title
        for line in items:
            yield from _wrapped(f"- {line}", "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Returns a list with `text` as one indented line, which the layout wraps; empty if `text` is empty."""
    return [f"{indent}{text}"] if text else []
