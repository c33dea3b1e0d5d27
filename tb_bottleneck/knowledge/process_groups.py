"""The kinds of process groups by their descriptions."""

import re
from functools import cache

from tb_bottleneck.knowledge.catalogue import Unsourced, load


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    entries = load("process_groups.toml")["description"]
    for entry in entries:
        if not entry.get("source", "").strip():
            raise Unsourced(f"process_groups.toml: {entry.get('pattern')} has no source")
    return tuple((re.compile(entry["pattern"]), entry["kind"]) for entry in entries)


def kind_of_description(description: str) -> str | None:
    """Returns the kind of a group with this description, `unknown` if it is over several dimensions, None if no
    pattern matches."""
    text = description.lower()
    return next((kind for pattern, kind in _patterns() if pattern.search(text)), None)
