"""The native scanner: C that turns lists of events into columns. It is optional: msgspec reads them as well."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import Unusable

if TYPE_CHECKING:
    from tb_bottleneck.native.scanner import Result

VARIABLE = "TB_BOTTLENECK_READER"
"""Environment variable: `pure` or `native` selects the reader; by default the native one is used if it is installed."""

Categories = tuple[tuple[bytes, int], ...]
Scan = Callable[[tuple[bytes, ...], Categories, bool], "Result | int"]


def native_scan() -> Scan | None:
    """Returns the native scanner, or None if VARIABLE is `pure` or the scanner is not installed.

    Raises Unusable: VARIABLE has an unknown value, or is `native` and the scanner is not installed.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "pure", "native"):
        raise Unusable(f"{VARIABLE} is {wanted!r}. It can be `pure` or `native`.")
    if wanted == "pure":
        return None
    try:
        from tb_bottleneck.native.scanner import scan
    except ImportError as error:
        if wanted == "native":
            raise Unusable(
                f"{VARIABLE} is `native`, but the native scanner is not installed ({error}). It is built with the "
                "package where there is a C compiler."
            ) from error
        return None
    return scan
