"""The columns of a list of trainings: their texts for people, and their values for programs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.report.figure_text import count_text, factor_text
from tb_bottleneck.text.table_rows import Row


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
    "gain": Column("Gain left", _gain_text, _gain_values, figure=True),
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
        "Health",
        lambda row: row.digest.health,
        lambda row: {"health": row.digest.health, "reason": row.digest.reason},
    ),
    "state": Column("State", lambda row: row.state, lambda row: {"state": row.state}),
    "action": Column("Action", lambda row: row.action, lambda row: {"action": row.action}),
}
