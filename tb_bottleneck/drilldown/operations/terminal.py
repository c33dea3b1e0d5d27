"""Writes the tables of a recording as text for the terminal."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tb_bottleneck.base.units import bytes_text, duration_text, rate_text, share_text
from tb_bottleneck.base.untrusted_text import one_line
from tb_bottleneck.report.rendering.figures import count_text
from tb_bottleneck.report.rendering.layout import Layout, shortened
from tb_bottleneck.schema import evidence_pb2 as pb

Column = tuple[str, Callable[[Any], str]]
_NOTHING = ("", "0", "0 ns")  # a column of these is left out, such as the device's on a CPU
_MIN_NAME = 24


def _optional(field: str, text: Callable[[float], str]) -> Callable[[Any], str]:
    return lambda row: text(getattr(row, field)) if row.HasField(field) else ""


def _time(field: str) -> Callable[[Any], str]:
    return lambda row: duration_text(getattr(row, field))


_EXTREMES: tuple[Column, ...] = (("Min", _time("min_ns")), ("Mean", _time("mean_ns")), ("Max", _time("max_ns")))
_SHARE: Column = ("Share", lambda row: share_text(row.share))
_CALLS: Column = ("Calls", lambda row: count_text(row.calls))
_COLUMNS: dict[str, tuple[str, tuple[Column, ...]]] = {
    "operators": (
        "operators",
        (
            ("Device", _time("device_ns")),
            ("With called", _time("device_total_ns")),
            ("Host", _time("host_ns")),
            ("With called", _time("host_total_ns")),
            _CALLS,
            ("Kernels", lambda row: count_text(row.kernels)),
            ("Tensor cores", lambda row: _tensor(row)),
        ),
    ),
    "kernels": (
        "kernels",
        (
            ("Time", _time("total_ns")),
            _SHARE,
            _CALLS,
            *_EXTREMES,
            ("Blocks/SM", _optional("blocks_per_sm", lambda value: f"{value:.1f}")),
            ("Occupancy", _optional("occupancy", share_text)),
        ),
    ),
    "waits": (
        "syncs",
        (("Device idle", _time("cost_ns")), _SHARE, ("Host waited", _time("waited_ns")), _CALLS),
    ),
    "copies": (
        "copies",
        (
            ("Time", _time("total_ns")),
            _SHARE,
            _CALLS,
            ("Moved", lambda row: bytes_text(row.bytes)),
            ("Rate", _optional("bytes_per_s", rate_text)),
        ),
    ),
    "communications": (
        "communications",
        (
            ("Time", _time("total_ns")),
            _SHARE,
            _CALLS,
            ("Size", lambda row: bytes_text(row.bytes) if row.bytes else ""),
            *_EXTREMES,
            ("Algorithm", _optional("algorithm_bytes_per_s", rate_text)),
            ("Bus", _optional("bus_bytes_per_s", rate_text)),
        ),
    ),
    "critical-path": (
        "critical_path",
        (("Time", _time("total_ns")), _SHARE, ("Parts", lambda row: count_text(row.count))),
    ),
}
_DETAILS: tuple[Column, ...] = (("Device", _time("device_ns")), ("Host", _time("host_ns")), _CALLS, *_EXTREMES)
_PLACES: tuple[Column, ...] = (("Device", _time("device_ns")), ("Host", _time("host_ns")))


def table_text(tables: pb.Tables, table: str, rows: int, layout: Layout) -> str:
    """Returns one table as text with at most `rows` rows. `table` is a key of _COLUMNS.

    The first line says how many steps the times are summed over.
    """
    field, columns = _COLUMNS[table]
    text = _text(list(getattr(tables, field))[:rows], columns, _name, layout)
    steps = f"{tables.steps} step{'s' if tables.steps != 1 else ''}"
    about = f"In total of {steps} in {duration_text(tables.window_ns)}:\n"
    return about + text if text else f"no {table.replace('-', ' ')}\n"


def details_text(details: pb.Details, rows: int, layout: Layout) -> str:
    """Returns the tables in `details` (calls of one operator or kernel by shapes, callers and so on) as text.

    Each table has at most `rows` rows.
    """
    parts = []
    for title, groups, columns in (
        ("By shapes", details.shapes, _DETAILS),
        ("By caller", details.callers, _DETAILS),
        ("By kernel", details.kernels, _DETAILS),
        ("By module", details.modules, _DETAILS),
        ("By function and line", details.lines, _PLACES),
    ):
        if groups:
            parts.append(f"{layout.styled_text(title, 'strong')}\n{_text(groups[:rows], columns, _row_name, layout)}")
    return "\n".join(parts)


def _tensor(row: pb.OperatorRow) -> str:
    if row.HasField("tensor_share"):
        return share_text(row.tensor_share)
    return "eligible" if row.tensor_eligible and row.device_ns else ""  # a CPU has none


def _name(row: Any) -> str:
    if isinstance(row, pb.SyncRow):
        return f"{row.line or row.operator} ({row.kind})"
    if isinstance(row, pb.CommunicationRow):
        group = f" in {row.group}" if row.group else ""
        return f"{row.operation}{group}" + (f", {row.ranks} ranks" if row.ranks else "")
    if isinstance(row, pb.CriticalRow):
        return f"{row.name} ({row.regime})" if row.name else f"host, while the time belongs to {row.regime}"
    return str(row.name)


def _row_name(row: Any) -> str:
    return f"{row.name}  [{' > '.join(row.chain)}]" if row.chain else str(row.name)


def _text(rows: Sequence[Any], columns: Sequence[Column], name: Callable[[Any], str], layout: Layout) -> str:
    if not rows:
        return ""
    columns = [(title, text) for title, text in columns if any(text(row) not in _NOTHING for row in rows)]
    cells = [[title for title, _ in columns], *([text(row) for _, text in columns] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    left = max(layout.width - sum(widths) - 2 * len(widths), _MIN_NAME)
    names = ["Name", *(shortened(one_line(name(row)), left) for row in rows)]
    lines = (f"{_padded(line, widths)}  {each}" for line, each in zip(cells, names, strict=True))
    return "\n".join(lines) + "\n"


def _padded(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
