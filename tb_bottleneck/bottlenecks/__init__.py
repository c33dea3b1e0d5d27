"""The bottlenecks of training. Each folder has what belongs to one: facts, rules, fixes and texts."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Returns the names of the bottlenecks, which are those of the folders."""
    return tuple(sorted(path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists()))
