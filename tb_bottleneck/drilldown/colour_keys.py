"""What the things on the timeline are, in one word each: the tab colours by it."""

from tb_bottleneck.regime import REGIMES

KEYS = (*REGIMES, "op", "mark", "call", "python", "step")
KEY = {word: row for row, word in enumerate(KEYS)}
