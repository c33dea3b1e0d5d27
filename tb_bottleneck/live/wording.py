"""A verdict about a running job in words (knowledge/live.toml)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Template

from tb_bottleneck.base.units import duration_text, ranks_text
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.live.rank_states import EXCHANGES, LiveJob, Rank, RankState, typical

STANDS_OUT = 0.10
"""A line is named if its share of the rank's stack samples exceeds that of the other ranks by at least this value.
Chosen."""


@dataclass(frozen=True)
class LiveVerdict:
    """What delays a job now. `ranks` are the culprits. `since_s` is how long ago a stall began in s, otherwise None.

    `waiting` are the ranks that wait for others. `excess_ns` is the time per step by which a slow rank takes longer.
    `place` is the line of the program as FILE:LINE, or empty.
    """

    cause: str
    severity: str  # critical | warning | info | none
    headline: str
    fix: str = ""
    ranks: tuple[int, ...] = ()
    place: str = ""
    since_s: float | None = None
    waiting: tuple[int, ...] = ()
    excess_ns: float = 0.0
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_stall(self) -> bool:
        """True if no step can finish until somebody acts."""
        return self.severity == "critical" and self.since_s is not None


def live_verdict(
    cause: str,
    severity: str,
    job: LiveJob,
    culprits: Sequence[Rank],
    stalled: bool = False,
    excess: float = 0.0,
    values: Mapping[str, str] | None = None,
) -> LiveVerdict:
    """Returns the verdict with the texts of `cause`. `culprits` are the ranks that are named. The place is that of the
    first culprit. `stalled` is True if the job cannot go on. `excess` is the time in ns per step by which the culprit
    takes longer. `values` are further placeholders of the texts."""
    texts = load("live.toml")
    first = culprits[0] if culprits else job.ranks[0]
    several, alone = len(culprits) > 1, job.world_size == 1
    place = first.place if stalled or cause == "busy" else slow_line(first, job.ranks)
    waiting = tuple(rank.number for rank in job.ranks if rank.state is RankState.WAITING and rank not in culprits)
    words = {
        "who": "The training" if alone else ranks_text([rank.number for rank in culprits or [first]]).capitalize(),
        "hang": "hang" if several else "hangs",
        "was": "were" if several else "was",
        "is": "are" if several else "is",
        "has": "have" if several else "has",
        "get": "get" if several else "gets",
        "need": "need" if several else "needs",
        "compute": "compute" if several else "computes",
        "place": place,
        "phase": texts["phase"].get(first.beat.phase, first.beat.phase),
        "since": duration_text(first.quiet_s * 1e9),
        "step": str(first.beat.step) if first.beat.step >= 0 else "none",
        "error": first.beat.error or "an error",
        "pid": str(first.beat.pid),
        "excess": duration_text(excess),
        **(values or {}),
    }
    headline = Template(texts["headline"][cause]).safe_substitute(words)
    if place and excess:
        headline += f" Its most frequent line beyond the others is {place}."
    if waiting and culprits:
        calls = sorted(
            {
                texts["phase"][rank.beat.phase]
                for rank in job.ranks
                if rank.number in waiting
                if rank.beat.phase in EXCHANGES
            }
        )
        headline += " " + Template(texts["waits"]["some"]).safe_substitute(
            ranks=ranks_text(waiting).capitalize(),
            wait="wait" if len(waiting) > 1 else "waits",
            calls=" and ".join(calls),
        )
    return LiveVerdict(
        cause,
        severity,
        headline,
        Template(texts["fix"].get(cause, "")).safe_substitute(words),
        tuple(rank.number for rank in culprits),
        place,
        first.quiet_s if stalled else None,
        waiting,
        excess,
    )


def slow_line(rank: Rank, ranks: Sequence[Rank]) -> str:
    """Returns the line, as FILE:LINE, at which the monitor found `rank` more often than the other `ranks` in the last
    minute; empty if no line stands out. The exchange of gradients does not count."""

    def shares(each: Rank) -> Counter[str]:
        total = sum(looks for *_, looks in each.beat.lines) or 1
        return Counter(
            {
                f"{file}:{line}": looks / total
                for file, line, _, phase, looks in each.beat.lines
                if phase not in EXCHANGES
            }
        )

    others = [shares(each) for each in ranks if each is not rank]
    beyond = {line: share - typical(each[line] for each in others) for line, share in shares(rank).items()}
    line = max(beyond, key=beyond.__getitem__, default="")
    return line if line and others and beyond[line] >= STANDS_OUT else ""
