"""The measures of one recording: the only input of rules, which never see the recording itself."""

from collections.abc import Callable, Sized
from typing import Generic, Protocol, TypeVar

from tb_bottleneck.attribution.owned_spans import Account
from tb_bottleneck.base.measure import Measure, Missing


class EvidenceSource(Protocol):
    """The input of measures: the recording of a trace, or the telemetry of one process."""

    @property
    def account(self) -> Account:
        """The time of the window by regime."""
        ...

    @property
    def on_device(self) -> bool:
        """True if an accelerator did work; otherwise the CPU counts as the device."""
        ...

    @property
    def steps(self) -> Sized:
        """The steps of the window."""
        ...


Source = TypeVar("Source", bound=EvidenceSource)
"""Type variable of the evidence source of measures, rules and verdicts: `Recording` (a trace) or `TelemetryRecording`.

With this variable, a type checker reports an error if a rule for telemetry uses a measure of traces.
"""

MeasureFunction = Callable[[Source], Measure | Missing]
"""A function that computes one measure of a recording. Its `__name__` is the key of the measure in verdicts and in the
advice texts."""


class Measures(Generic[Source]):
    """The measures of one recording. Each measure is computed when it is first used, and is cached by its key."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._taken: dict[str, Measure | Missing] = {}

    def __call__(self, measure: MeasureFunction[Source]) -> Measure | Missing:
        """Returns the result of the function `measure` for this recording. The function is called at most once."""
        key = measure.__name__
        if key not in self._taken:
            self._taken[key] = measure(self._source)
        return self._taken[key]

    def value(self, measure: MeasureFunction[Source], otherwise: float) -> float:
        """Returns the value of the measure `measure`, or `otherwise` if the measure is missing."""
        result = self(measure)
        return otherwise if isinstance(result, Missing) else result.value

    @property
    def account(self) -> Account:
        """The time of the window by regime."""
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
        """The results of all measures that were computed so far, by key."""
        return dict(self._taken)
