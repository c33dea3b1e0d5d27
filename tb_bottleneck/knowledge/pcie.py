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


@cache
def pinned_rates() -> Mapping[int, float]:
    """Returns the rate of copies from pinned memory over PINNED_LANES lanes, in GB/s, by generation."""
    entries = load("pcie.toml")["link"]
    return {entry["generation"]: float(entry["pinned_x16"]) for entry in entries if "pinned_x16" in entry}
