"""The recorded problems of the memory: what the report names, and the peak before and after the fix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.index import read_index
from demo.pairs import PAIRS, Pair
from tb_bottleneck.base.units import bytes_text
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema.bottleneck_pb2 import Memory

_HEAD = (
    "| problem | expected | named, slow | named, fixed | peak, slow | predicted after | peak, fixed | error |",
    "|---|---|---|---|---|---|---|---|",
)
_FORECAST = {"activation_checkpointing": "checkpointing"}
"""The forecast of the slow recording that is about the fix."""


@dataclass(frozen=True)
class MemoryPair:
    """The memory of one pair. Each step of a growing run has another peak, so only a forecast is compared."""

    pair: Pair
    slow: Memory
    fixed: Memory

    @property
    def predicted(self) -> float | None:
        """The predicted peak after the fix, from the slow recording alone; None if nothing predicts it."""
        change = _FORECAST.get(self.pair.name)
        return next((it.peak_bytes for it in self.slow.forecasts if it.change == change), None)


def rows(logdir: Path) -> Iterator[MemoryPair]:
    """Yields the pairs about memory with both variants recorded."""
    index = read_index(logdir)["pairs"]
    for name, pair in PAIRS.items():
        variants = index.get(name, {})
        if pair.memory and {"slow", "fixed"} <= variants.keys():
            paths = (logdir / name / variant / variants[variant]["trace"] for variant in ("slow", "fixed"))
            slow, fixed = (diagnose(str(path)).memory for path in paths)
            yield MemoryPair(pair, slow, fixed)


def lines_of(found: Sequence[MemoryPair]) -> list[str]:
    """Returns the table in Markdown; empty without rows."""
    if not found:
        return []
    lines = list(_HEAD)
    for row in found:
        predicted, error = "", ""
        if row.predicted is not None:
            predicted, error = bytes_text(row.predicted), f"{row.predicted / row.fixed.peak_bytes - 1:+.0%}"
        named = (_named(row.slow), _named(row.fixed))
        peaks = (bytes_text(row.slow.peak_bytes), predicted, bytes_text(row.fixed.peak_bytes))
        lines.append(f"| {' | '.join((row.pair.name, row.pair.memory, *named, *peaks, error))} |")
    return lines


def _named(memory: Memory) -> str:
    return ", ".join(finding.cause for finding in memory.findings) or "-"
