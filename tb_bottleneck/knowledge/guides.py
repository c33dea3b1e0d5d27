"""The official documentation of the fix of each cause, from knowledge/guides.toml."""

from functools import cache

from tb_bottleneck.knowledge.catalogue import load


@cache
def _url_by_cause() -> dict[str, str]:
    return {cause: guide["url"] for guide in load("guides.toml")["guide"] for cause in guide["causes"]}


def guide_of(cause: str) -> str:
    """Returns the address of the official documentation of a cause's fix; empty if it has none."""
    return _url_by_cause().get(cause, "")
