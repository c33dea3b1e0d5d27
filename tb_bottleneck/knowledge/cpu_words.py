"""The words for runs on the CPU, from cpu_words.toml."""

from collections.abc import Callable, Mapping
from functools import cache

from tb_bottleneck.knowledge.catalogue import load


@cache
def cpu_words() -> Mapping[str, str]:
    """Returns the parts of texts that are replaced in reports of runs on the CPU."""
    words: dict[str, str] = load("cpu_words.toml")["words"]
    return words


def words_for(device_kind: str) -> Callable[[str], str]:
    """Returns the function that puts a text of ours in the words for a kind of device: "cpu", or any other."""
    return on_cpu if device_kind == "cpu" else str


@cache
def on_cpu(text: str) -> str:
    """Returns a text of ours as it is said of a run on the CPU."""
    for part, instead in cpu_words().items():
        text = text.replace(part, instead)
    return text
