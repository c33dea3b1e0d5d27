"""The first collective that not all ranks of its group called alike, from dumps of torch's Flight Recorder.

torch's own tool, torchfrtrace, compares the ranks in the same way (torch/distributed/flight_recorder). Here only the
first difference of each group counts: what follows it is a consequence.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tb_bottleneck.base.text import ranks_text
from tb_bottleneck.sources.flight_recorder import Call, Dump


@dataclass(frozen=True)
class Divergence:
    """A collective of a group: `ranks` are those that did not call it, called another one, or did not begin it."""

    group: str
    call: Call
    ranks: tuple[int, ...]
    kind: str  # missing | different | not started

    @property
    def sentence(self) -> str:
        """The difference in words."""
        what = f"{self.call.name or 'collective'} number {self.call.sequence} of group {self.group or 'default'}"
        did = {
            "missing": "did not call",
            "different": "called another operation instead of",
            "not started": "did not begin",
        }
        return f"Flight Recorder: {ranks_text(self.ranks)} {did[self.kind]} {what}."


def first_divergence(dumps: Sequence[Dump]) -> Divergence | None:
    """Returns the first difference: another operation before a missing one, then the lowest number. None without one.

    A dump has the last few thousand calls. Only what every rank of a group still has is compared.
    """
    found = [_of_group(name, dumps) for name in {name for dump in dumps for name in dump.groups}]
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: (each.kind != "different", each.call.sequence, each.group), default=None)


def _of_group(name: str, dumps: Sequence[Dump]) -> Divergence | None:
    members = {rank for dump in dumps for rank in dump.groups.get(name, ())}
    calls = {
        dump.rank: {call.sequence: call for call in dump.calls if call.group == name}
        for dump in dumps
        if dump.rank in members
    }
    if len(calls) < 2 or not any(calls.values()):
        return None
    first = max(min(each, default=0) for each in calls.values())
    last = max(max(each, default=0) for each in calls.values())
    for sequence in range(first, last + 1):
        called = {rank: each[sequence] for rank, each in calls.items() if sequence in each}
        if not called:
            continue
        usual = Counter((call.name, call.sizes) for call in called.values()).most_common(1)[0][0]
        example = next(call for call in called.values() if (call.name, call.sizes) == usual)
        different = tuple(sorted(rank for rank, call in called.items() if (call.name, call.sizes) != usual))
        if different and not _may_differ(example.name):
            return Divergence(name, example, different, "different")
        missing = tuple(sorted(rank for rank in calls if rank not in called))
        if missing:
            return Divergence(name, example, missing, "missing")
        waiting = tuple(sorted(rank for rank, call in called.items() if call.state == "scheduled"))
        if waiting and len(waiting) < len(called) and sequence == last:
            return Divergence(name, example, waiting, "not started")
    return None


def _may_differ(name: str) -> bool:
    """Returns True for operations whose inputs have another size on each rank."""
    return any(word in name for word in ("all_to_all", "scatter", "gather", "coalesced"))
