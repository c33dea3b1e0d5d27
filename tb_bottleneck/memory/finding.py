"""The type of a finding about memory."""

from dataclasses import dataclass

CRITICAL, WARNING, INFO = SEVERITIES = "critical", "warning", "info"
"""Severities of findings. Critical means that the training has run out of memory, or will run out of memory soon."""


@dataclass(frozen=True)
class Value:
    """One line of evidence for a finding. `name` is the key of the label. `value` is a number with its `unit` ("bytes",
    "share", a fraction from 0 to 1, or "count"), or a text with the unit "text"."""

    name: str
    value: float | str
    unit: str = "bytes"


@dataclass(frozen=True)
class MemoryFinding:
    """A memory problem. `cause` is its key, `severity` one of SEVERITIES.

    `bytes` is the most that a fix can save at the peak; 0 if this is not known."""

    cause: str
    severity: str
    bytes: int
    evidence: tuple[Value, ...]
