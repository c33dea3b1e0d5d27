"""Texts and devices for what a run without a problem could still gain, from headroom.toml."""

from collections.abc import Mapping
from string import Template

from tb_bottleneck.knowledge.catalogue import load


def headroom_text(kind: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Returns the title and the summary."""
    entry = load("headroom.toml")[kind]
    return Template(entry["title"]).safe_substitute(values), Template(entry["summary"]).safe_substitute(values)


def headroom_label(name: str) -> str:
    """Returns the label of a line of evidence."""
    return str(load("headroom.toml")["evidence"][name])


def larger_device_names() -> tuple[str, ...]:
    """Returns the devices that are offered as faster ones, by their names in gpus.toml, in order."""
    return tuple(load("headroom.toml")["larger_devices"])
