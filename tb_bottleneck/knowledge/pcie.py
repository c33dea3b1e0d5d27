"""Rates of PCI Express links, from pcie.toml."""

from collections.abc import Mapping
from functools import cache

from tb_bottleneck.knowledge.catalogue import load

USABLE_LINK_SHARE = 0.8
"""Share of the payload rate that a copy can use. Packets and flow control take 12 to 20 % (55.4 of 63 GB/s measured on
5x16)."""

PINNED_LANES = 16
"""Number of lanes that the rates of `pinned_rates` are for."""


@cache
def lane_rates() -> Mapping[int, float]:
    """Returns the payload rate of one lane in one direction, in GB/s, by generation."""
    return {entry["generation"]: float(entry["lane"]) for entry in load("pcie.toml")["link"]}


def link_text(
    speed: tuple[int, int],
    maximum: tuple[int, int] | None,
    device_maximum: int | None,
    device_lanes: int | None = None,
) -> str:
    """Returns the link in words: generation and lanes, and whether the slot or the device allows more.

    Args:
        speed: generation and lanes in use under load.
        maximum: the highest ones of this device in this slot.
        device_maximum: the highest generation of the device in any slot.
        device_lanes: the number of lanes of the device.
    """
    now = f"generation {speed[0]} x{speed[1]}"
    if maximum is None:
        return now
    if speed < maximum or speed[1] < maximum[1]:
        return f"{now}, maximum generation {maximum[0]} x{maximum[1]}"
    if device_maximum is not None and device_maximum > maximum[0]:
        return f"{now}, the limit of this slot; the device supports generation {device_maximum}"
    if device_lanes is not None and device_lanes > maximum[1]:
        return f"{now}, the limit of this slot; the device has {device_lanes} lanes"
    return f"{now}, the highest of this device in this slot"


@cache
def pinned_rates() -> Mapping[int, float]:
    """Returns the rate of copies from pinned memory over PINNED_LANES lanes, in GB/s, by generation."""
    entries = load("pcie.toml")["link"]
    return {entry["generation"]: float(entry["pinned_x16"]) for entry in entries if "pinned_x16" in entry}
