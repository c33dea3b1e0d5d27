"""The guided index of the demo: one entry per problem, with what it shows, what its fix gained, and its address."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from demo.index import read_index
from demo.pairs import PAIRS, Pair

TAB = "#tb_bottleneck"
OVERVIEW = f"{TAB}&p.tb_bottleneck.all=all"
BY_PROBLEM = f"{TAB}&p.tb_bottleneck.all={quote('by=folder&sort=-gain')}"
"""One row for each problem, with the step times of its recordings: before the fix, then with it."""
_HEALTHY = "no problem"


def index_lines(logdir: Path, url: str) -> Iterator[str]:
    """Yields the recorded problems in the order of PAIRS: the most instructive first, those without a problem last."""
    recorded = read_index(logdir)["pairs"]
    pairs = [pair for pair in PAIRS.values() if pair.name in recorded]
    for pair in sorted(pairs, key=lambda pair: pair.shows.startswith(_HEALTHY)):
        yield f"  {pair.name}: {pair.shows}{_gain(pair, recorded[pair.name])}"
        yield f"    {url}{TAB}&p.tb_bottleneck.run={_key(pair, recorded[pair.name])}"


def _gain(pair: Pair, entry: dict[str, Any]) -> str:
    """Returns the measured gain of the fix, as the end of a line; nothing for variants that do different work, and for
    problems of the memory, whose fixes save no time."""
    gain = entry.get("slow_over_fixed")
    return "" if gain is None or pair.memory or pair.shows.startswith(_HEALTHY) else f" ({gain:.1f}x as fast, measured)"


def _key(pair: Pair, entry: dict[str, Any]) -> str:
    """Returns the name of the slow recording in the tab's address."""
    variant = next(iter(pair.variants))
    return quote(f"{pair.name}/{variant}/{entry[variant]['trace']}")
