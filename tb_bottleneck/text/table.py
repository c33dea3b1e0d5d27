"""Formats a list of trainings, one row for each, for a terminal and as JSON.

The columns of a list of trainings: their texts for people, and their values for programs.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.base.units import bytes_text, duration_text, one_line, share_text
from tb_bottleneck.report.figure_text import count_text, factor_text
from tb_bottleneck.text.document import Line, Table
from tb_bottleneck.text.table_rows import Row
from tb_bottleneck.text.terminal import Layout, cut, fitted, shortened


@dataclass(frozen=True)
class Column:
    """One column of the table. `text` returns the cell for people, which is empty if the value is not known. `values`
    returns the fields of the JSON form; None stands for a value that is not known. Cells are right-aligned if `figure`
    is True."""

    title: str
    text: Callable[[Row], str]
    values: Callable[[Row], Mapping[str, object]]
    figure: bool = False


def _verdict_text(row: Row) -> str:
    if row.verdict is not None:
        return row.alert.title if row.alert is not None else row.verdict.title
    return (
        "memory only"
        if row.report.evidence_source == "snapshot"
        else f"no verdict: {(row.digest.reason or row.digest.health).replace('_', ' ')}"
    )


def _gain_text(row: Row) -> str:
    if row.gain <= 1:
        return ""
    if row.speedup is not None and row.speedup.basis == "bound":
        return f"≤{factor_text(row.speedup.high)}"
    return factor_text(row.gain)


def _gain_values(row: Row) -> dict[str, object]:
    gain = row.speedup
    values = (gain.expected, gain.low, gain.high, gain.basis) if gain is not None else (None,) * 4
    return dict(zip(("gain", "gain_low", "gain_high", "gain_basis"), values, strict=True))


def _memory_values(row: Row) -> dict[str, object]:
    memory = row.memory
    headroom = memory.headroom_bytes if memory is not None and memory.HasField("headroom_bytes") else None
    return {"peak_bytes": memory.peak_bytes if memory is not None else None, "headroom_bytes": headroom}


def _memory_text(row: Row) -> str:
    memory = row.memory
    if memory is None:
        return ""
    free = f" ({bytes_text(memory.headroom_bytes)} free)" if memory.HasField("headroom_bytes") else ""
    return f"{bytes_text(memory.peak_bytes)}{free}"


def _count_text(value: float | None) -> str:
    return count_text(value) if value is not None else ""


COLUMNS: dict[str, Column] = {
    "name": Column("Training", lambda row: row.name, lambda row: {"run": row.report.run, "source": row.report.source}),
    "evidence": Column(
        "Evidence", lambda row: row.sources, lambda row: {"evidence": row.sources, "recordings": len(row.reports)}
    ),
    "severity": Column(
        "Severity",
        lambda row: row.severity,
        lambda row: {
            "severity": row.severity,
            "confidence": row.verdict.confidence if row.verdict is not None else None,
        },
    ),
    "verdict": Column(
        "Verdict", _verdict_text, lambda row: {"verdict": row.verdict.title if row.verdict is not None else None}
    ),
    "share": Column(
        "Share",
        lambda row: share_text(row.verdict.share) if row.verdict is not None and row.alert is None else "",
        lambda row: {"share": row.verdict.share if row.verdict is not None else None},
        figure=True,
    ),
    "lost": Column(
        "Lost",
        lambda row: share_text(row.digest.lost_share) if row.digest.lost_share is not None else "",
        lambda row: {"lost_share": row.digest.lost_share},
        figure=True,
    ),
    "gain": Column("To gain", _gain_text, _gain_values, figure=True),
    "step": Column(
        "Step",
        lambda row: duration_text(row.digest.step_ns) if row.digest.step_ns is not None else "",
        lambda row: {"step_ns": row.digest.step_ns},
        figure=True,
    ),
    "rate": Column(
        "Samples/s",
        lambda row: _count_text(row.samples_per_second),
        lambda row: {"samples_per_second": row.samples_per_second},
        figure=True,
    ),
    "batch": Column(
        "Batch",
        lambda row: _count_text(row.samples_per_step),
        lambda row: {"samples_per_step": row.samples_per_step},
        figure=True,
    ),
    "memory": Column("Memory", _memory_text, _memory_values, figure=True),
    "device": Column("Device", lambda row: row.digest.device, lambda row: {"device": row.digest.device}),
    "revision": Column("Revision", lambda row: row.digest.revision[:10], lambda row: {"revision": row.digest.revision}),
    "health": Column(
        "Health", lambda row: row.digest.health, lambda row: {"health": row.digest.health, "reason": row.digest.reason}
    ),
    "state": Column("State", lambda row: row.state, lambda row: {"state": row.state}),
    "action": Column("Action", lambda row: row.action, lambda row: {"action": row.action}),
}

WIDE = 170
"""From this width (characters) on, verdict, device and action are on the line of the training, not below it."""

NARROW_COLUMNS = ("name", "severity", "share", "gain", "step", "rate", "health")  # with _below
WIDE_COLUMNS = ("name", "severity", "verdict", "share", "gain", "step", "rate", "memory", "device", "health", "action")
_LEAST_NEEDED = ("health", "rate", "share")
"""Default columns that are left out in a narrow terminal, in this order, so that names are not cut."""
_IF_ROOM = ("memory", "device", "verdict")
"""Columns that are added in a terminal of medium width, in this order, if they fit in addition to full names."""
_NAME_ROOM = 28
"""Smallest width of names in characters; columns are left out if names would have less. With fewer characters, names of
one folder look alike."""
_LEAST_START = 12
"""Smallest length in characters of a common start of names that is left out. Leaving out a shorter start saves little
space. The tab has the same limit."""
_INDENT = "    "
_MAX_DEVICE = 22  # characters: "NVIDIA H100 80GB HBM3" fits
SCHEMA = 1
"""The version of the JSON form of a list."""


def table_text(rows: Sequence[Row], layout: Layout, chosen: Sequence[str] = ()) -> str:
    """Returns the table for a terminal. Names and texts that are too long are cut.

    `chosen` are keys of COLUMNS; by default, the columns depend on the width.
    """
    keys = chosen or (WIDE_COLUMNS if layout.width >= WIDE else _narrow_columns(rows, layout.width))
    texts = [_cells(row, keys) for row in rows]
    start = ""
    if "name" in keys:
        at = list(keys).index("name")
        start = _common_start([cells[at] for cells in texts])
        header = [*map(len, _headers(keys))]
        widths = fitted([max(each) for each in zip(header, *(map(len, cells) for cells in texts), strict=True)], layout)
        for cells in texts:
            name = cells[at].removeprefix(start)
            cells[at] = shortened(name, max(widths[at], header[at]))
    for row, cells in zip(rows, texts, strict=True):
        if "severity" in keys:
            cells[list(keys).index("severity")] = Line(cells[list(keys).index("severity")], row.severity)
    below = [_below(row, layout, keys) for row in rows] if not chosen and layout.width < WIDE else ()
    columns = "".join(">" if COLUMNS[key].figure else "<" for key in keys)
    table = Table(columns, texts, header=_headers(keys), below=below, indent=0)
    return layout.text([f"Each name begins with {start}", table] if start else [table])


def table_values(rows: Iterable[Row]) -> dict[str, object]:
    """Returns what `list --json` prints: the values of all columns of each training, with full names, times in ns and
    shares from 0 to 1. A value that is not known is absent."""
    trainings = [
        {key: value for column in COLUMNS.values() for key, value in column.values(row).items() if value is not None}
        for row in rows
    ]
    return {"schema": SCHEMA, "trainings": trainings}


def _headers(keys: Iterable[str]) -> list[str]:
    return [COLUMNS[key].title for key in keys]


def _cells(row: Row, keys: Iterable[str]) -> list[str]:
    return [one_line(COLUMNS[key].text(row)) for key in keys]


def _common_start(names: Sequence[str]) -> str:
    """Returns the text that all names begin with, up to the end of a word; empty if it is short or no name has to be
    cut."""
    if len(names) < 2 or max(map(len, names)) <= _NAME_ROOM:
        return ""
    shared = os.path.commonprefix(list(names))  # noqa: RUF071 (characters are meant: these are names)
    start = shared[: max(shared.rfind(separator) for separator in "/_-. ") + 1]
    return start if len(start) >= _LEAST_START else ""


def _widths(texts: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*texts, strict=True)]


def _narrow_columns(rows: Sequence[Row], width: int) -> Sequence[str]:
    """Returns the columns for a table of `width` characters: the columns of NARROW_COLUMNS that leave room for names,
    and columns of _IF_ROOM that fit beside them."""
    texts = [_headers(WIDE_COLUMNS), *(_cells(row, WIDE_COLUMNS) for row in rows)]
    needed = dict(zip(WIDE_COLUMNS, _widths(texts), strict=True))
    full, keys = dict(needed), list(NARROW_COLUMNS)
    needed["name"] = min(needed["name"], _NAME_ROOM)
    for key in _LEAST_NEEDED:
        if _sum(needed, keys) <= width:
            break
        keys.remove(key)
    filled = {key for cells in texts[1:] for key, cell in zip(WIDE_COLUMNS, cells, strict=True) if cell}
    for key in _IF_ROOM:
        if len(keys) >= len(NARROW_COLUMNS) and key in filled and _sum(full, [*keys, key]) <= width:
            keys.append(key)
    return [key for key in WIDE_COLUMNS if key in keys]


def _sum(widths: Mapping[str, int], keys: Sequence[str]) -> int:
    """Returns the width in characters of a line with the columns `keys`, with two spaces between columns."""
    return sum(widths[key] for key in keys) + 2 * (len(keys) - 1)


def _below(row: Row, layout: Layout, keys: Sequence[str]) -> Line:
    """Returns the second line of a row. The second line has verdict, action and device, except those that have a column
    in `keys`."""
    below = ("verdict", "action", "device")
    verdict, action, device = ("" if key in keys else text for key, text in zip(below, _cells(row, below), strict=True))
    said, room = ": ".join(filter(None, (verdict, action))), layout.width - len(_INDENT)
    device = f" · {cut(device, _MAX_DEVICE)}" if device else ""
    device = device if len(said) + len(device) <= room else ""  # the verdict and the action are more important
    text = cut(said, room)
    return Line(f"{_INDENT}{text}{device}" if text or device else "", "faint")
