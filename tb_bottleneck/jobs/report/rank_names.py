"""Ranks in words."""

from collections.abc import Sequence

MAX_NAMED = 6


def ranks_text(ranks: Sequence[int]) -> str:
    """Returns "rank 3", "ranks 0, 1 and 5", "ranks 8 to 15" or "12 ranks (0, 7, ...)"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    first, last = ranks[0], ranks[-1]
    if len(ranks) > 2 and list(ranks) == list(range(first, last + 1)):
        return f"ranks {first} to {last}"
    if len(ranks) > MAX_NAMED:
        return f"{len(ranks)} ranks ({first}, {ranks[1]}, ...)"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {last}"
