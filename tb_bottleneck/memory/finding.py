"""The type of a finding about memory."""

from dataclasses import dataclass

CRITICAL, WARNING, INFO = SEVERITIES = "critical", "warning", "info"
"""Critical: the training has run out of memory, or soon will."""


@dataclass(frozen=True)
class Value:
    """One line of evidence: the name of its label, and a number with its unit (bytes, share, count), or a text."""

    name: str
    value: float | str
    unit: str = "bytes"


@dataclass(frozen=True)
class MemoryFinding:
    """A problem. `bytes` is what its fix can save at the peak at most; 0 if that is not known."""

    cause: str
    severity: str
    bytes: int
    evidence: tuple[Value, ...]
