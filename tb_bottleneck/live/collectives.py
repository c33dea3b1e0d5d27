"""Finds the first collective in which the ranks of a group differ, from dumps of torch's Flight Recorder.

torch's own tool, torchfrtrace, compares the ranks by the same rules (torch/distributed/flight_recorder/components,
`Op.match` and `error_analysis`). Here, only the first difference of each group counts; later ones are consequences.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.base.units import ranks_text
from tb_bottleneck.sources.flight_recorder import Call, Dump, Shapes

Ranks = tuple[int, ...]

_DID = {
    "missing": "did not call",
    "different": "called another operation than, or with other sizes or types,",
    "split": "did not agree on the operation, sizes or types of",
    "not started": "did not begin",
    "unequal": "sent and received different amounts in",
}


@dataclass(frozen=True)
class Divergence:
    """A collective `call` in which the ranks of the process group `group` differ. `ranks` are the ranks that did not
    call the collective, called another one, or did not start it, according to `kind`. For an all-to-all with unequal
    sizes, and if no call is that of most ranks, `ranks` are all ranks that called it."""

    group: str
    call: Call
    ranks: Ranks
    kind: str  # missing | different | split | not started | unequal

    @property
    def sentence(self) -> str:
        """A sentence that names the ranks and the collective in which they differ."""
        who = ranks_text(self.ranks)
        return f"{who[:1].upper()}{who[1:]} {_DID[self.kind]} {call_text(self.call)}."


def call_text(call: Call) -> str:
    """Returns a text that names a call by its operation, its number and its group."""
    return f"{call.name or 'collective'} number {call.sequence} of group {call.group or 'default'}"


def first_divergence(dumps: Sequence[Dump]) -> Divergence | None:
    """Returns the first difference between the ranks in `dumps`, or None if there is no difference.

    Of several groups with differences, groups with different operations come first, then those with lower sequence
    numbers. A dump has only the last few thousand calls. Therefore, only calls from the time that the dumps of all
    ranks of a group cover are compared.
    """
    found = [_of_group(name, members, dumps) for name, members in sorted(_groups(dumps))]
    known = [each for each in found if each is not None]
    return min(
        known, key=lambda each: (each.kind not in ("different", "split"), each.call.sequence, each.group), default=None
    )


def _groups(dumps: Sequence[Dump]) -> set[tuple[str, Ranks]]:
    """Returns the groups as pairs (name, ranks), because several groups can have the same name. With Gloo, a dump does
    not contain the ranks of a group; then, `ranks` are the ranks that called a collective of the group."""
    callers: dict[str, set[int]] = defaultdict(set)
    known: set[tuple[str, Ranks]] = set()
    for dump in dumps:
        known.update((name, ranks) for name, ranks in dump.groups.items() if ranks)
        for name in {call.group for call in dump.calls if not dump.groups.get(call.group)}:
            callers[name].add(dump.rank)
    return known | {(name, tuple(sorted(ranks))) for name, ranks in callers.items()}


def _of_group(name: str, members: Ranks, dumps: Sequence[Dump]) -> Divergence | None:
    calls = {
        dump.rank: _by_sequence(dump, name)
        for dump in dumps
        if dump.rank in members and dump.groups.get(name, members) in (members, ())
    }
    if len(calls) < 2 or not any(calls.values()):
        return None
    begins = [min(each, default=0) for each in calls.values()]
    sequences = sorted({sequence for each in calls.values() for sequence in each if sequence >= max(begins)})
    for sequence in sequences:
        called = {rank: each.get(sequence, []) for rank, each in calls.items()}
        if sequence == max(begins) > min(begins) and len({len(each) for each in called.values()}) > 1:
            continue  # a rank's dump begins within a coalesced collective
        for index in range(max(map(len, called.values()))):
            part = {rank: each[index] for rank, each in called.items() if index < len(each)}
            found = _difference(name, part, members, set(calls), sequence == sequences[-1])
            if found is not None:
                return found
    return None


def _by_sequence(dump: Dump, name: str) -> dict[int, list[Call]]:
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in dump.calls:
        if call.group == name:
            calls[call.sequence].append(call)
    return calls


def _difference(
    name: str, called: Mapping[int, Call], members: Ranks, dumped: set[int], is_last: bool
) -> Divergence | None:
    """Returns how the ranks differ in one collective, or None if they agree. `called` has the call of each rank that
    made one, `members` are the ranks of the group, and `dumped` the members whose dump exists. `is_last` is True for
    the last collective in the dumps: only in this collective, ranks that have not started it count."""
    usual, callers = Counter(map(_signature, called.values())).most_common(1)[0]
    example = next(call for call in called.values() if _signature(call) == usual)
    different = tuple(sorted(rank for rank, call in called.items() if _signature(call) != usual))
    if different and 2 * callers > len(called):
        return Divergence(name, example, different, "different")
    if different:
        return Divergence(name, example, tuple(sorted(called)), "split")
    missing = tuple(sorted(dumped - set(called)))
    if missing:
        return Divergence(name, example, missing, "missing")
    if _is_all_to_all(example) and set(members) == dumped:
        sent = sum(_elements(call.inputs) for call in called.values())
        if sent != sum(_elements(call.outputs) for call in called.values()):
            return Divergence(name, example, tuple(sorted(called)), "unequal")
    waiting = tuple(sorted(rank for rank, call in called.items() if call.state == "scheduled"))
    if is_last and waiting and len(waiting) < len(called):
        return Divergence(name, example, waiting, "not started")
    return None


def _signature(call: Call) -> tuple[object, ...]:
    """Returns the properties of a call that must be equal on all ranks. The result leaves out the inputs of a scatter,
    the outputs of a gather, both for an all-to-all, and the types of operations in which only the root has inputs or
    outputs."""
    kind = call.name.rpartition(":")[2]
    inputs = None if kind == "scatter" or _is_all_to_all(call) else call.inputs
    outputs = None if kind == "gather" or _is_all_to_all(call) else call.outputs
    return call.name, inputs, outputs, None if kind in ("scatter", "gather", "broadcast") else call.types


def _is_all_to_all(call: Call) -> bool:
    return "all_to_all" in call.name or "alltoall" in call.name


def _elements(shapes: Shapes) -> int:
    return sum(map(math.prod, shapes))
