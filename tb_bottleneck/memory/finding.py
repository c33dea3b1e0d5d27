"""The type of a finding about memory."""

from dataclasses import dataclass

CRITICAL, WARNING, INFO = SEVERITIES = "critical", "warning", "info"
"""Critical: the training has run out of memory, or will soon run out of memory."""


@dataclass(frozen=True)
class Value:
    """One line of evidence: the key of the label, and a number with its unit (bytes, share, count), or a text."""

    name: str
    value: float | str
    unit: str = "bytes"


@dataclass(frozen=True)
class MemoryFinding:
    """A memory problem. `bytes` is the most that its fix can save at the peak; 0 if that is not known."""

    cause: str
    severity: str
    bytes: int
    evidence: tuple[Value, ...]
