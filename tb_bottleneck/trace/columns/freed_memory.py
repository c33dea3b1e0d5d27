"""Returns freed memory to the operating system.

glibc keeps what lies below memory still in use. After a trace is read, that is as much as the columns take.
"""

import ctypes
import sys


def return_freed_memory() -> None:
    """Returns what the C library keeps. Does nothing where it has no such function."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
