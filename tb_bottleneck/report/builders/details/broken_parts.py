"""What a report says about a part of it that could not be built."""

from string import Template

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.schema import bottleneck_pb2 as pb


def broken_part(part: str) -> pb.BrokenPart:
    """Returns the entry of a part. Raises KeyError if there is no such part."""
    texts = load("parts.toml")
    return pb.BrokenPart(part=part, because=Template(texts["broken"]).substitute(title=texts["title"][part]))
