"""The pairs that are recorded: which illnesses there are, and what a trace of each has to hold. Imports no torch."""

from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
HALVES = {"slow": False, "fixed": True}  # the folder of a half, and the value of its switch `cured`


@dataclass(frozen=True)
class Pair:
    """One illness and its cure: `demo/<name>.py` holds both."""

    name: str
    shows: str  # what the training does wrong, and what cures it; words for people
    active_steps: int = 6
    with_stack: bool = False  # Python frames cost time and space: only where the illness is visible in nothing else


PAIRS = {
    pair.name: pair
    for pair in (
        Pair("loader_in_main_process", "batches made in the training process; cured by two DataLoader workers"),
        Pair("checkpointing", "a checkpoint every second step; cured by writing them seldom", with_stack=True),
        Pair("oversubscribed_threads", "16 threads for each core; cured by one for each", active_steps=5),
    )
}
