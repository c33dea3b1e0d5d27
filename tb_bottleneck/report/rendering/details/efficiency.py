"""Formats the efficiency part of a report as plain text."""

from collections.abc import Collection, Iterator

from tb_bottleneck.base.text import share_text
from tb_bottleneck.knowledge.texts import figure_texts
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Figures whose basis changes how the value is read, and figures whose absence users ask about. The JSON form has all.
_WITH_BASIS = ("mfu", "peak_flops", "goodput", "joules_per_step", "cost_per_million_samples")
_EXPLAINED = ("mfu", "cost_per_million_samples")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def lines_of(efficiency: pb.Efficiency, explained: Collection[str] = _EXPLAINED) -> Iterator[str]:
    """Yields the lines of the section; none if no figure is known. They say why `explained` ones are not."""
    fields = {text.field for text in figure_texts()}  # a saved report may have others
    known = [note for note in efficiency.notes if note.field in fields and efficiency.HasField(note.field)]
    if not known:
        return
    yield ""
    yield Line("Efficiency", "strong")
    width = max(len(note.title) for note in known)
    for note in known:
        value = figure_text(getattr(efficiency, note.field), note.unit)
        types = _types(efficiency) if note.field == "peak_flops" else ""
        basis = f"  {note.basis}" if note.field in _WITH_BASIS else ""
        yield f"  {note.title:{width}}  {value:>13}{types}{basis}"
    if efficiency.HasField("mfu"):
        yield from wrapped(next((note.definition for note in known if note.field == "mfu"), ""), "  ")
    for note in efficiency.notes:
        if note.because and note.field in explained:
            yield from wrapped(f"{note.title} is not known: {note.because}.", "  ")


def figure_text(value: float, unit: str) -> str:
    """Returns a value in its unit: "41 %", "312 TFLOP/s", "1,250 /s", "0.35 J"."""
    if unit == "share":
        return share_text(value)
    if unit in ("flops", "flops_per_s"):
        return f"{_with_prefix(value)}{'FLOP/s' if unit == 'flops_per_s' else 'FLOP'}"
    if unit == "per_second":
        return f"{_number(value)} /s"
    return f"{_number(value)} J" if unit == "joules" else f"{value:,.2f}"


def _types(efficiency: pb.Efficiency) -> str:
    if len(efficiency.types) < 2:
        return f" {efficiency.types[0].dtype}," if efficiency.types else ""
    return " " + ", ".join(f"{one.dtype} {share_text(one.share)}" for one in efficiency.types) + ","


def _with_prefix(value: float) -> str:
    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), (1.0, ""))
    return f"{_number(value / size)} {prefix}"


def _number(value: float) -> str:
    """Returns a number with three significant digits, or whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
