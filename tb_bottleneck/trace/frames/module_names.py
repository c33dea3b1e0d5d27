"""Names of the modules of a model, as the profiler writes them or the monitor marks them."""

import re

from tb_bottleneck.trace.kinds import MODULE

# The number of an instance (Linear_3), or of an entry of a list (layers.3); not a digit in a name (Conv2d).
_NUMBER = re.compile(r"(?<=[_.])\d+(?=$|\.|\s)")


def module_name(name: str) -> str:
    """Returns the name of a row without the profiler's prefix: `Linear_3`, or `encoder.layers.3` of a mark."""
    return name.removeprefix(MODULE)


def merged_module(name: str) -> str:
    """Returns the name with `*` for its numbers: the name that the layers of a stack share."""
    return _NUMBER.sub("*", module_name(name))
