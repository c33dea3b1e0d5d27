"""Formats what torch.compile did as text."""

from collections.abc import Iterator

from tb_bottleneck.base.text import duration_text
from tb_bottleneck.report.rendering.figures import place_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

PER_STEP = "per step"


def lines_of(compilation: pb.Compilation, per: str = PER_STEP) -> Iterator[str]:
    """Yields the lines of the part; `per` says what its numbers refer to."""
    yield Line("torch.compile", "strong")
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
