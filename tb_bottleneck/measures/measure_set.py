"""The measures of one recording: the only input of rules, which never see the recording itself."""

from collections.abc import Callable, Sized
from typing import Generic, Protocol, TypeVar

from tb_bottleneck.attribution.owned_spans import Account
from tb_bottleneck.base.measure import Measure, Missing


class EvidenceSource(Protocol):
    """The input of measures: the recording of a trace, or the telemetry of one process."""

    @property
    def account(self) -> Account:
        """The account: the time of the window by regime."""
        ...

    @property
    def on_device(self) -> bool:
        """True if an accelerator did work; otherwise the CPU counts as the device."""
        ...

    @property
    def steps(self) -> Sized:
        """The judged steps."""
        ...


Source = TypeVar("Source", bound=EvidenceSource)
"""The evidence source of measures, rules and verdicts: `Recording` (a trace) or `TelemetryRecording`.

The type variable keeps the two apart: a telemetry rule that names a measure of traces is a type error.
"""

MeasureFunction = Callable[[Source], Measure | Missing]
"""A function that takes one measure. Its `__name__` is the key of the measure in verdicts and in the advice texts."""


class Measures(Generic[Source]):
    """The measures of one recording. Each is taken on first use and cached by its key."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._taken: dict[str, Measure | Missing] = {}

    def __call__(self, measure: MeasureFunction[Source]) -> Measure | Missing:
        """Returns the result of `measure`, which is called once per recording."""
        key = measure.__name__
        if key not in self._taken:
            self._taken[key] = measure(self._source)
        return self._taken[key]

    def value(self, measure: MeasureFunction[Source], otherwise: float) -> float:
        """Returns the number of a measure, or `otherwise` if the measure is missing."""
        result = self(measure)
        return otherwise if isinstance(result, Missing) else result.value

    @property
    def account(self) -> Account:
        """The account: the time of the window by regime."""
        return self._source.account

    @property
    def on_device(self) -> bool:
        """True if an accelerator did work; otherwise the CPU counts as the device."""
        return self._source.on_device

    @property
    def steps(self) -> int:
        """The number of steps in the window."""
        return len(self._source.steps)

    @property
    def taken(self) -> dict[str, Measure | Missing]:
        """Every measure taken so far, by key."""
        return dict(self._taken)
