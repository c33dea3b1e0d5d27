"""Why a job hung, from the dumps of torch's Flight Recorder alone: which rank did not call which collective, and where
the ranks were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tb_bottleneck.base.units import ranks_text
from tb_bottleneck.live.collectives import Divergence, Ranks, call_text, first_divergence
from tb_bottleneck.sources.flight_recorder import Call, Dump, dumps_in

_CODE_CHECK = "Look for branches that not all ranks take alike: uneven batches, early exits, work of rank 0 only."
_FIX = {
    "missing": _CODE_CHECK,
    "different": "Compare the calls above: each rank has to call the same collectives in the same order, with the same "
    "sizes and types.",
    "split": "Compare the calls above: no call is that of most ranks.",
    "not started": "The rank was late or blocked on its device: look at its log and at its GPU.",
    "unequal": "Compare the sizes that the ranks pass to the all-to-all.",
    "absent": "Look at the log of this rank first: a rank that ended, or was killed, leaves no dump.",
    "agree": "The program calls the same collectives on all ranks. Look at the network, the GPUs and NCCL's log "
    "(NCCL_DEBUG=INFO).",
    "done": "The ranks may hang outside of collectives: look at their stacks (py-spy dump --pid PID).",
}


@dataclass(frozen=True)
class PostMortem:
    """The dumps of a job that hung. `ranks` left dumps; `absent` belong to groups of these ranks and left none. `kind`
    is that of `divergence`, or absent, agree (all ranks called the last collective, and none completed it) or done (no
    collective was under way). `calls` has the last call of some ranks, with its stack."""

    ranks: Ranks
    absent: Ranks
    kind: str
    headline: str
    fix: str
    divergence: Divergence | None
    calls: tuple[tuple[int, Call], ...]

    def lines(self) -> Iterator[str]:
        """Yields the lines for a terminal."""
        yield self.headline
        yield f"From {len(self.ranks)} dumps of Flight Recorder ({ranks_text(self.ranks)})."
        if self.absent and self.kind != "absent":
            yield f"No dump: {ranks_text(self.absent)}."
        for rank, call in self.calls:
            yield ""
            sizes = (
                f", {call.inputs} to {call.outputs}, {call.types}"
                if self.kind in ("different", "split", "unequal")
                else ""
            )
            yield f"Rank {rank}: {call_text(call)}, {call.state or 'state not known'}{sizes}"
            yield from (f"    {frame}" for frame in call.stack)
        yield ""
        yield self.fix

    def as_json(self) -> dict[str, Any]:
        """Returns the post mortem as JSON-ready values."""
        found = self.divergence
        return {
            "kind": self.kind,
            "headline": self.headline,
            "fix": self.fix,
            "ranks": list(self.ranks),
            "absent_ranks": list(self.absent),
            "culprits": list(found.ranks if found is not None else self.absent),
            "collective": None
            if found is None
            else {"name": found.call.name, "number": found.call.sequence, "group": found.group},
            "calls": [
                {"rank": rank, "collective": call_text(call), "state": call.state, "stack": list(call.stack)}
                for rank, call in self.calls
            ],
        }


def post_mortem(folder: str) -> PostMortem | None:
    """Returns what the dumps in `folder` show; None if there are none with calls."""
    dumps = [dump for dump in dumps_in(folder) if dump.calls]
    if not dumps:
        return None
    ranks = tuple(dump.rank for dump in dumps)
    members = {rank for dump in dumps for group in dump.groups.values() for rank in group}
    absent = tuple(sorted(members - set(ranks)))
    shown: Ranks = ranks[:1]
    found = first_divergence(dumps)
    last = max((dump.calls[-1] for dump in dumps), key=lambda call: call.sequence)
    if found is not None:
        kind, headline = found.kind, found.sentence
        shown = (found.ranks[0], next((rank for rank in ranks if rank not in found.ranks), found.ranks[-1]))
    elif absent:
        kind = "absent"
        headline = f"{_capital(ranks_text(absent))} left no dump. The others called the same; last {call_text(last)}."
    elif any(call.state != "completed" for dump in dumps for call in dump.calls[-1:]):
        kind = "agree"
        headline = f"All ranks called {call_text(last)}, and it did not complete."
    else:
        kind = "done"
        headline = f"No collective was under way: all ranks completed {call_text(last)}."
    return PostMortem(ranks, absent, kind, headline, _FIX[kind], found, tuple(_calls(folder, shown, found)))


def _calls(folder: str, ranks: Sequence[int], found: Divergence | None) -> Iterator[tuple[int, Call]]:
    """Yields for each of `ranks` its call of the collective in which the ranks differ; its last call of the group if it
    did not call it."""
    for dump in dumps_in(folder, frozenset(ranks)):
        yield dump.rank, _call_of(dump, found)


def _call_of(dump: Dump, found: Divergence | None) -> Call:
    own = [call for call in dump.calls if found is None or call.group == found.group] or list(dump.calls)
    same = (call for call in own if found is not None and call.sequence == found.call.sequence)
    return next(same, own[-1])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
