"""A monitor for tests: it writes often, and records a trace only on request."""

from pathlib import Path
from typing import Any

from tb_bottleneck import Monitor


def quick(logdir: Path, **options: Any) -> Monitor:
    return Monitor(logdir, **{"captures": 0, "every_s": 0.1, **options})
