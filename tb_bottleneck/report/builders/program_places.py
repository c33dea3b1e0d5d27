"""The places in the user's program that a report names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.user_code.places import Place
from tb_bottleneck.schema import bottleneck_pb2 as pb

Places = Mapping[tuple[Regime, str], Sequence[Place]]
"""The places of each cause, by its regime and its name, costliest first."""

# A line with less of the cost is not what the headline is about.
MIN_HEADLINE_SHARE = 0.5


def place_rows(places: Places, regime: Regime, cause: str) -> list[pb.Place]:
    """Returns the places of a cause."""
    return [pb.Place(**asdict(place)) for place in places.get((regime, cause), ())]


def most_of_it(places: Places, regime: Regime, cause: str) -> str:
    """Returns a sentence about the line with most of the cost of a cause; empty if there is no such line."""
    return sentence_about(places.get((regime, cause), ()))


def sentence_about(places: Iterable[Place | pb.Place]) -> str:
    """Returns a sentence about the costliest of these places; empty if it has less than half of the cost."""
    costliest = next(iter(places), None)
    if costliest is None or not costliest.file or costliest.share < MIN_HEADLINE_SHARE:
        return ""
    line = f"{costliest.file}:{costliest.line}" if costliest.line else costliest.file
    return f" Most of it is in {costliest.function} ({line})."
