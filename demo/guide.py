"""What `python -m demo` prints: the address of the list of problems, the three best ones to open, and how to stop."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from demo.index import read_index
from demo.pairs import PAIRS, RECORDED

TAB = "#tb_bottleneck"
OVERVIEW = f"{TAB}&p.tb_bottleneck.all=all"
BY_PROBLEM = f"{TAB}&p.tb_bottleneck.all={quote('by=folder&sort=-gain')}"
"""One row for each problem, the largest gain first, with the step times before the fix and with it."""
BEST = 3


def guide(logdir: Path, url: str) -> Iterator[str]:
    """Yields the lines for the server at `url`; for a logdir other than that of the demo without the problems."""
    if logdir == RECORDED:
        recorded = read_index(logdir)["pairs"]
        gains = {pair.name: recorded.get(pair.name, {}).get("slow_over_fixed") for pair in PAIRS.values()}
        best = [f"{name} ({gain:.1f}x)" for name, gain in gains.items() if gain is not None][:BEST]
        yield f"Recorded problems, each before its fix (slow) and with it (fixed): {url}{BY_PROBLEM}"
        yield f"Open first, with the measured gain: {', '.join(best)}. All of them: python -m demo --help"
    else:
        yield f"All recordings: {url}{OVERVIEW}"
    yield "Press Ctrl-C to quit."
