"""The sampler of GPUs: puts each question to each GPU of this process in its time, and outlives a lost driver."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice, GpuDriver, GpuQuery
from tb_bottleneck.monitor.samplers.own_gpus import UnknownGpus
from tb_bottleneck.monitor.samplers.rates import Clock
from tb_bottleneck.monitor.samplers.sampler import Reading

RETRY_S = 60.0
"""After a refusal that may pass. A call to a driver that is being restarted can take seconds."""
LOOK_AGAIN_S = 30.0
"""How often it is looked which GPUs this process uses: it may take another one late."""
ENOUGH_ANSWERS = 3
"""The first answer of a question that compares two moments holds nothing, so one answer tells little."""
# The monitor's thread never wakes exactly on time; a question may come this part of its period early.
_EARLY = 0.1

D = TypeVar("D", bound=GpuDriver)
Choose = Callable[[Sequence[GpuDevice]], Sequence[GpuDevice]]


@dataclass(frozen=True, slots=True)
class _Off:
    because: str
    until: float


class GpuSampler(Generic[D]):
    """Readings of the GPUs that `choose` picks. `choose` raises UnknownGpus, the driver and questions DriverError; none passes
    through: what was refused is off until it is tried again, and `missing` says why."""

    every_s = 1.0

    def __init__(
        self, driver: D, questions: Sequence[GpuQuery[D]], choose: Choose, clock: Clock = time.monotonic
    ) -> None:
        self._driver = driver
        self._questions = questions
        self._choose = choose
        self._clock = clock
        self._open = False
        self._gpus: tuple[GpuDevice, ...] = ()
        self._look_at = -math.inf
        self._none = _Off("the driver was not asked yet", -math.inf)
        self._due: dict[tuple[str, int], float] = {}
        self._off: dict[tuple[str, int], _Off] = {}
        self._answered: dict[tuple[str, int], int] = {}
        self._given: set[tuple[str, str]] = set()

    def read(self) -> Iterator[Reading]:
        """What the questions whose time has come give."""
        now = self._clock()
        for gpu in self._present(now):
            for index, question in enumerate(self._questions):
                if not self._open:
                    return
                key = (gpu.uuid, index)
                if now < self._due.get(key, -math.inf):
                    continue
                self._due[key] = now + question.every_s * (1 - _EARLY)
                yield from self._ask(key, question, gpu, now)

    def missing(self) -> Mapping[str, str]:
        """Signals that none of the GPUs gives; all of them where there is no GPU to ask."""
        gpus = self._present(self._clock())
        if not gpus:
            return {signal: self._none.because for question in self._questions for signal in question.signals}
        found: dict[str, str] = {}
        for index, question in enumerate(self._questions):
            for signal in question.signals:
                reasons = [self._why_not(gpu, index, signal) for gpu in gpus]
                if all(reasons):
                    found[signal] = reasons[0]
        return found

    def close(self) -> None:
        """Gives the driver back."""
        if self._open:
            self._open = False
            self._driver.close()
        self._gpus = ()
        self._none = _Off("the monitor has ended", math.inf)

    def _ask(self, key: tuple[str, int], question: GpuQuery[D], gpu: GpuDevice, now: float) -> Iterator[Reading]:
        try:
            found = question.ask(self._driver, gpu)
        except DriverError as refusal:
            self._off[key] = _Off(str(refusal), math.inf if refusal.lasting else now + RETRY_S)
            self._due[key] = self._off[key].until
            if refusal.lost:
                self._lose(str(refusal), now)
            return
        self._off.pop(key, None)
        self._answered[key] = self._answered.get(key, 0) + 1
        for signal, value in found.items():
            if math.isfinite(value):
                self._given.add((gpu.uuid, signal))
                yield Reading(signal, value, gpu.uuid)

    def _why_not(self, gpu: GpuDevice, index: int, signal: str) -> str:
        """Why this GPU does not give the signal; empty where it does, or may yet."""
        off = self._off.get((gpu.uuid, index))
        if off is not None:
            return off.because
        never = self._answered.get((gpu.uuid, index), 0) >= ENOUGH_ANSWERS and (gpu.uuid, signal) not in self._given
        return "the driver answers, but leaves this out" if never else ""

    def _present(self, now: float) -> tuple[GpuDevice, ...]:
        """The GPUs to ask; none while the driver is lost or not there, or it is not known which ones are ours."""
        if now < (self._look_at if self._gpus else self._none.until):
            return self._gpus
        try:
            if not self._open:
                self._driver.open()
                self._open = True
            self._gpus = tuple(self._choose(self._driver.gpus()))
            self._look_at = now + LOOK_AGAIN_S
        except UnknownGpus as reason:
            self._gpus, self._none = (), _Off(str(reason), now)
        except DriverError as refusal:
            self._lose(str(refusal), math.inf if refusal.lasting else now)
        return self._gpus

    def _lose(self, because: str, now: float) -> None:
        self._gpus, self._none = (), _Off(because, now + RETRY_S)
        self._due.clear()
        if self._open:
            self._open = False
            self._driver.close()
