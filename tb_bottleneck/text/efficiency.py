"""The sections of a report about efficiency, torch.compile's work and captured graphs."""

from collections.abc import Collection, Iterator

from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.knowledge.texts import figure_texts
from tb_bottleneck.report.figure_text import count_text, place_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.document import Part, Table, heading, wrapped

# Figures whose basis changes how the value is read, and figures whose absence users ask about. The JSON form has all.
_WITH_BASIS = ("mfu", "peak_flops", "goodput", "joules_per_step")
_EXPLAINED, _DEFINED = ("mfu",), ("mfu", "goodput")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def efficiency_lines(efficiency: pb.Efficiency, explained: Collection[str] = _EXPLAINED) -> Iterator[Part]:
    """Yields the lines about efficiency; none if no figure is known. If a figure in `explained` (names of fields) is
    not known, a line says why."""
    fields = {text.field for text in figure_texts()}  # a saved report may have others
    known = [note for note in efficiency.notes if note.field in fields and efficiency.HasField(note.field)]
    if not known:
        return
    yield ""
    yield heading("Efficiency")
    rows = []
    for note in known:
        types = _types(efficiency) if note.field == "peak_flops" else ""
        basis = note.basis if note.field in _WITH_BASIS else ""
        value = figure_text(getattr(efficiency, note.field), note.unit)
        rows.append((note.title, value, f"{types} {basis}".strip()))
    yield Table("<><", rows, wraps=True)
    for note in known:
        if note.field in _DEFINED:
            yield from wrapped(f"{note.title}: {note.definition}", "  ")
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
        return f"{efficiency.types[0].dtype}," if efficiency.types else ""
    return ", ".join(f"{one.dtype} {share_text(one.share)}" for one in efficiency.types) + ","


def _with_prefix(value: float) -> str:
    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), (1.0, ""))
    return f"{_number(value / size)} {prefix}"


def _number(value: float) -> str:
    """Returns a number as text: with three significant digits below 100, whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


PER_STEP = "per step"


def compilation_lines(compilation: pb.Compilation, per: str = PER_STEP) -> Iterator[Part]:
    """Yields the lines about what torch.compile did; `per` says what the numbers refer to, such as "per step"."""
    yield heading("torch.compile")
    if compilation.HasField("regions"):
        plural = "" if compilation.regions == 1 else "s"
        took = f"; compiling takes {duration_text(compilation.compile_ns)} {per}" if compilation.compile_ns else ""
        yield from wrapped(f"{compilation.regions:.3g} compiled region{plural} {per}{took}.")
    for function in compilation.functions:
        time = f", {duration_text(function.ns)}" if function.HasField("ns") else ""
        yield from wrapped(f"- {_place(function)}: {_count(function)}{time}", "  ")
        yield from wrapped(function.failure, "      ")
        for reason in function.reasons:
            yield from wrapped(f"guard: {reason}", "      ")
    for entry in compilation.breaks:
        time = f", {duration_text(entry.ns_per_step)} {per}" if entry.HasField("ns_per_step") else ""
        yield from wrapped(f"- graph break in {_place(entry)}{time}", "  ")
        yield from wrapped(entry.reason, "      ")
    if compilation.outside:
        names = [_operator(entry) for entry in compilation.outside]
        yield from wrapped(f"- operators outside of the graphs, {per}: {', '.join(names)}", "  ")
    yield from wrapped(compilation.missing)


def _count(function: pb.CompiledFunction) -> str:
    if function.failure:
        return "runs without compiled code"
    times = f"{function.compilations} time{'s' if function.compilations != 1 else ''}"
    return f"compiled {times}" if function.compilations else "parts compiled"


def _operator(entry: pb.OutsideGraph) -> str:
    calls = f"{entry.calls:.3g} call{'s' if entry.calls != 1 else ''}"
    return f"{entry.name} ({calls}, {duration_text(entry.ns_per_step)})"


def _place(entry: pb.CompiledFunction | pb.GraphBreak) -> str:
    if not entry.function and not entry.file:
        return "a function that was not recorded"
    return place_text(pb.Place(file=entry.file, line=entry.line, function=entry.function))


_MIN_NS = 1_000


def graph_lines(replays: pb.GraphReplays, per: str = PER_STEP) -> Iterator[Part]:
    """Yields the lines about replays of captured CUDA graphs; `per` says what the numbers refer to, such as "per
    step"."""
    yield heading("CUDA graphs")
    outside = f"outside of them, {count_text(replays.outside_operations)} operations run for "
    outside += f"{duration_text(replays.outside_ns)} {per}"
    plural = "" if replays.launches == 1 else "es"
    yield from wrapped(f"{count_text(replays.launches)} launch{plural} {per}; {outside}.")
    for graph in replays.graphs:
        yield from wrapped(f"- {count_text(graph.operations)} operations{_graph(graph, per)}", "  ")
    names = [
        f"{entry.name} ({count_text(entry.calls)}x, {duration_text(entry.ns_per_step)})" for entry in replays.outside
    ]
    if names:
        yield from wrapped(f"- outside of the graphs, {per}: {', '.join(names)}", "  ")


def _graph(graph: pb.ReplayedGraph, per: str) -> str:
    place = f" in {place_text(graph.place)}" if graph.HasField("place") else ""
    idle = f" ({duration_text(graph.idle_ns)} of it idle)" if graph.idle_ns >= _MIN_NS else ""
    before = f", after {duration_text(graph.idle_before_ns)} without work" if graph.idle_before_ns >= _MIN_NS else ""
    launched = f"{place}, {count_text(graph.launches)} {per}"
    return f"{launched}: {duration_text(graph.device_ns)}{idle}{before}; the call takes {duration_text(graph.call_ns)}"
