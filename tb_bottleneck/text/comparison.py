"""Documents about comparisons, predictions and series."""

from collections.abc import Iterable, Iterator

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.comparison.series.explanations import DIFFERENT_WORK
from tb_bottleneck.comparison.significance import MIN_COMPARED_STEPS
from tb_bottleneck.comparison.texts.headline import may_be_same_work
from tb_bottleneck.comparison.texts.value_text import ratio_text, speedup_range_text, speedup_text, time_text
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.text.document import RULE, Part, Table, bar, heading, listed, wrapped
from tb_bottleneck.text.terminal import Layout

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


def _comparison(comparison: pb.Comparison) -> Iterator[Part]:
    yield f"A: {comparison.a}"
    yield f"B: {comparison.b}"
    yield RULE
    yield heading(comparison.headline)
    if comparison.comparable:
        if may_be_same_work(comparison) and min(comparison.a_steps, comparison.b_steps) >= MIN_COMPARED_STEPS:
            test = f" {comparison.test}" if comparison.significant else ""  # otherwise it is in the headline
            name = "Recorded steps: speedup" if comparison.HasField("unprofiled") else "Speedup"
            interval = f"{ratio_text(comparison.speedup)} ± {share_text(comparison.noise)}"
            yield from wrapped(f"{name} {interval} (variation of steps).{test}")
        yield from _waterfall(
            list(comparison.by_regime), f"From A to B, time per {comparison.per}", comparison.a_ns, comparison.b_ns
        )
        yield from _expected(comparison)
        yield from _causes(comparison)
        yield from _context(comparison)
    yield from _notes(comparison.notes, comparison.headline)


def _waterfall(
    bars: list[pb.RegimeDelta], title: str, a_ns: float, b_ns: float, runs: tuple[str, str] = ("A", "B")
) -> Iterator[Part]:
    """Yields the lines of a table with one line per regime, largest change first, then the whole times.

    Regimes with less than MIN_SHOWN_SHARE of the longer time are left out. `bars` has the times of each regime, `title`
    is the heading. `a_ns` and `b_ns` are the whole times, `runs` the headings of their columns.
    """
    longest = max(a_ns, b_ns)
    shown = [delta for delta in bars if max(delta.a_ns, delta.b_ns) >= MIN_SHOWN_SHARE * longest]
    scale = max((abs(delta.delta_ns) for delta in shown), default=1.0) or 1.0
    rows = []
    for delta in sorted(shown, key=lambda delta: -abs(delta.delta_ns)):
        marks = ("+" if delta.delta_ns > 0 else "-") * round(abs(delta.delta_ns) / scale * BAR_WIDTH)
        rows.append((delta.title, time_text(delta.a_ns), time_text(delta.b_ns), _change(delta.delta_ns), marks))
    others = b_ns - a_ns - sum(delta.delta_ns for delta in shown)
    if abs(others) >= MIN_SHOWN_SHARE * longest:
        rows.append(("all others", "", "", _change(others), ""))
    rows.append(("whole", time_text(a_ns), time_text(b_ns), _change(b_ns - a_ns), ""))
    yield ""
    yield title
    yield Table("<>>><", rows, header=("", *runs, "change", ""))


def _change(ns: float) -> str:
    whole = round(ns)
    return ("+" if whole > 0 else "-") + duration_text(abs(whole)) if whole else "-"


def _expected(comparison: pb.Comparison) -> Iterator[Part]:
    if not comparison.HasField("expected"):
        return
    expected = comparison.expected
    yield ""
    yield "Expected time of A's work on B's device (by replay of A with B's device times)"
    yield from wrapped(
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
            yield from wrapped(f"- {bar.title}: {times}; {row.because}", "  ")
    yield ""
    yield "Measured minus expected time, share of B's time"
    for part in expected.shortfall:
        yield from wrapped(f"{_signed(part.share):>6}  {part.cause}: {part.because}", "  ")
    yield from listed("Assumed", expected.assumptions)


def _signed(share: float) -> str:
    """Formats a share with its sign, as in "+12 %"."""
    return ("+" if share >= 0 else "-") + share_text(abs(share))


def _causes(comparison: pb.Comparison) -> Iterator[Part]:
    if comparison.causes.gained or comparison.causes.lost:
        yield ""
    if comparison.causes.gained:
        yield from wrapped(f"Causes found in B and not in A: {', '.join(comparison.causes.gained)}")
    if comparison.causes.lost:
        yield from wrapped(f"Causes found in A and not in B: {', '.join(comparison.causes.lost)}")


def _context(comparison: pb.Comparison) -> Iterator[Part]:
    if not comparison.context:
        return
    yield ""
    yield "Environment differences"
    for row in comparison.context:
        yield from wrapped(f"- {row.title}: {row.a} → {row.b}", "  ")


def _what_if(prediction: pb.WhatIf) -> Iterator[Part]:
    yield f"{prediction.run}, if {' and '.join(prediction.changes)}" if prediction.changes else prediction.run
    yield RULE
    yield heading(prediction.headline)
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
    yield from listed("Assumed", prediction.assumptions)
    yield from _notes(prediction.notes, prediction.headline)


def _what_if_table(table: pb.WhatIfTable) -> Iterator[Part]:
    yield f"{table.run}, under other conditions" + (
        f": now {duration_text(table.step_ns)} per step" if table.rows else ""
    )
    yield RULE
    for number, group in enumerate(dict.fromkeys(row.group for row in table.rows)):
        rows = []
        for row in (row for row in table.rows if row.group == group):
            after, regime = row.after, Regime(row.regime).label_within
            speed = f"{ratio_text(after.speedup)}x ({ratio_text(after.low)} to {ratio_text(after.high)})"
            rows.append((row.title, f"{time_text(after.step_ns)}/{row.per}", speed, f"{regime}{_memory(row)}"))
        yield from ("",) if number else ()
        yield Table("<><<", rows, header=("If it had", "Time", "Speed", "Then mostly"))
    yield from listed("Notes", table.notes)


def _memory(row: pb.WhatIfRow) -> str:
    if not row.HasField("memory"):
        return ""
    fits = ("; fits" if row.memory.fits else "; may not fit") if row.memory.HasField("fits") else ""
    return f", peak {bytes_text(row.memory.peak_bytes)}{fits}"


def _series(series: pb.RunSeries) -> Iterator[Part]:
    yield heading(series.headline)
    if series.points and series.kind == DIFFERENT_WORK:
        yield ""
        yield from (f"  {duration_text(point.ns)} per {series.per}: {point.value}" for point in series.points)
    elif series.points:
        yield ""
        longest = max(point.ns for point in series.points)
        rows = [
            (
                point.value,
                duration_text(point.ns),
                bar(point.ns / longest, BAR_WIDTH),
                f"{ratio_text(point.speedup)}x",
                point.regime,
                f"({duration_text(point.low_ns)} to {duration_text(point.high_ns)})"
                if point.steps >= MIN_COMPARED_STEPS
                else "(one step)",
            )
            for point in series.points
        ]
        yield Table("<><><<", rows, header=(series.varies, f"time per {series.per}", "", "", "", ""))
    yield from listed("Notes", series.notes)


def _notes(notes: Iterable[str], headline: str) -> Iterator[Part]:
    """Yields the lines of a list of the notes that the headline does not already contain."""
    yield from listed("Notes", (note for note in notes if note not in headline))
