"""What the rules are given: the account, and every other measure for the asking. A rule never sees a trace."""

from collections.abc import Callable, Sized
from typing import Any, Protocol

from tb_bottleneck.attribution.account import Account
from tb_bottleneck.measure import Measure, Missing

# Takes the Recording of a trace or the TelemetryRecording of a process: a rule uses one of them, never both.
MeasureFunction = Callable[[Any], Measure | Missing]


class Witness(Protocol):
    """What measures are taken of."""

    @property
    def account(self) -> Account:
        """Every nanosecond of the window with its owner."""
        ...

    @property
    def on_device(self) -> bool:
        """Whether an accelerator worked; else the CPU is the device."""
        ...

    @property
    def steps(self) -> Sized:
        """The judged steps."""
        ...


class Measures:
    """Measures of one recording. A measure is asked for by its function, taken once, and kept."""

    def __init__(self, recording: Witness) -> None:
        self._recording = recording
        self._taken: dict[str, Measure | Missing] = {}

    def __call__(self, measure: MeasureFunction) -> Measure | Missing:
        """The measure that this function takes; its name is its key."""
        key = measure.__name__
        if key not in self._taken:
            self._taken[key] = measure(self._recording)
        return self._taken[key]

    def value(self, measure: MeasureFunction, otherwise: float) -> float:
        """The number of a measure; where it is missing, what the caller states to be true of a run without it."""
        found = self(measure)
        return otherwise if isinstance(found, Missing) else found.value

    @property
    def account(self) -> Account:
        """Every nanosecond of the window with its owner."""
        return self._recording.account

    @property
    def on_device(self) -> bool:
        """Whether an accelerator worked; else the CPU is the device."""
        return self._recording.on_device

    @property
    def steps(self) -> int:
        """Steps in the window."""
        return len(self._recording.steps)

    @property
    def taken(self) -> dict[str, Measure | Missing]:
        """Everything that was asked for so far, by key."""
        return dict(self._taken)
