"""The regimes: the owners of step time, with their attributes.

This is the only list of regimes in Python; `frontend/generate_types.py` writes the same list for the tab.
"""

from dataclasses import dataclass
from enum import Enum


class Owner(Enum):
    """What uses the time of a regime: the device, a link, the host, or unknown."""

    DEVICE = "the device computes"
    LINK = "data moves between host and device, or between devices"
    HOST = "the device is idle because of the host"
    UNKNOWN = "nothing recorded explains the time"


class Regime(str, Enum):
    """The owner of a piece of step time. The value is the id that reports contain."""

    INPUT = "input"
    TRANSFER = "transfer"
    SYNC = "sync"
    LAUNCH = "launch"
    HOST = "host"
    ALLOCATOR = "allocator"
    INTERRUPTION = "interruption"
    COMMUNICATION = "communication"
    MEMORY = "memory"
    COMPUTE = "compute"
    UNDERFILLED = "underfilled"
    UNEXPLAINED = "unexplained"
    GPU_UNUSED = "gpu_unused"

    @property
    def owner(self) -> Owner:
        """What uses the time of the regime."""
        return _ATTRIBUTES[self].owner

    @property
    def label(self) -> str:
        """The name shown to users."""
        return _ATTRIBUTES[self].label

    @property
    def label_within(self) -> str:
        """The label within a sentence. Names keep their capital."""
        return self.label if self.label.startswith("Python") else self.label.lower()

    @property
    def colour(self) -> str:
        """The name of the colour in charts. The tab defines the colour itself."""
        return _ATTRIBUTES[self].colour

    @property
    def on_device(self) -> bool:
        """True if the device computes in this time."""
        return self.owner is Owner.DEVICE

    @property
    def device_busy(self) -> bool:
        """True if the device works in this time: it computes or moves data."""
        return self.owner in (Owner.DEVICE, Owner.LINK)

    @property
    def needs_device(self) -> bool:
        """True if a run on the CPU cannot have this regime: it has no second processor to wait for or to copy to."""
        return self in (Regime.TRANSFER, Regime.SYNC, Regime.ALLOCATOR, Regime.UNDERFILLED)

    @property
    def in_account(self) -> bool:
        """True if the account (time per regime) has a row for this regime. Otherwise, the regime is a verdict about a
        whole run."""
        return self is not Regime.GPU_UNUSED

    __str__ = str.__str__
    __repr__ = str.__repr__

    def __format__(self, spec: str) -> str:
        """Formats the id as text, with the format specification `spec` of strings."""
        return format(str(self.value), spec)


@dataclass(frozen=True)
class _Attributes:
    """`owner`, `label` and `colour` are the properties of the same names of Regime."""

    owner: Owner
    label: str
    colour: str


_ATTRIBUTES = {
    Regime.INPUT: _Attributes(Owner.HOST, "Waiting for data", "orange"),
    Regime.TRANSFER: _Attributes(Owner.LINK, "Copies between host and device", "amber"),
    Regime.SYNC: _Attributes(Owner.HOST, "Host waits for the device", "red"),
    Regime.LAUNCH: _Attributes(Owner.HOST, "Launch overhead", "gold"),
    Regime.HOST: _Attributes(Owner.HOST, "Python outside torch", "brown"),
    Regime.ALLOCATOR: _Attributes(Owner.HOST, "Driver allocations", "pink"),
    Regime.INTERRUPTION: _Attributes(Owner.HOST, "Interruptions", "magenta"),
    Regime.COMMUNICATION: _Attributes(Owner.LINK, "Collectives", "violet"),
    Regime.MEMORY: _Attributes(Owner.DEVICE, "Memory bandwidth", "blue"),
    Regime.COMPUTE: _Attributes(Owner.DEVICE, "Compute", "green"),
    Regime.UNDERFILLED: _Attributes(Owner.DEVICE, "Small kernels", "teal"),
    Regime.UNEXPLAINED: _Attributes(Owner.UNKNOWN, "Unexplained", "grey"),
    Regime.GPU_UNUSED: _Attributes(Owner.HOST, "The GPU is not used", "red"),
}

REGIMES: tuple[Regime, ...] = tuple(regime for regime in Regime if regime.in_account)
"""The regimes of the account, in the order in which reports list them."""

DEVICE_REGIMES: tuple[Regime, ...] = tuple(regime for regime in REGIMES if regime.on_device)
"""The regimes in which the device computes."""

AVOIDABLE_REGIMES: tuple[Regime, ...] = tuple(regime for regime in REGIMES if regime.owner in (Owner.HOST, Owner.LINK))
"""The regimes in which the device does not compute, for a known reason: a fix can recover all of their time."""
