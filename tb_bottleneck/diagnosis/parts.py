"""The parts of a report beside its verdicts. An error in one of them affects only that part, and the report says so."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tb_bottleneck.report.builders.details.broken_parts import broken_part
from tb_bottleneck.schema import bottleneck_pb2 as pb

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class Parts:
    """Builds the parts of one report, and keeps the names of those that fail (knowledge/parts.toml)."""

    def __init__(self) -> None:
        self._broken: list[str] = []

    def build(self, part: str, build: Callable[[], Result]) -> Result | None:
        """Returns the part, or None if it raises an error. Raises only MemoryError."""
        try:
            return build()
        except MemoryError:
            raise
        except Exception:
            _log.exception("the part '%s' of one report could not be built", part)
            self._broken.append(part)
            return None

    def shown_in(self, report: pb.Report) -> pb.Report:
        """Returns the report, with the parts that failed."""
        report.broken_parts.extend(map(broken_part, self._broken))
        return report
