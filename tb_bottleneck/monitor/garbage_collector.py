"""Keeps the garbage collector off while the stack of another thread is read, in Python 3.11.

There, reading a frame of another thread makes an object for it, and that may start a collection. A collection runs
Python code (callbacks, finalizers), so that the other thread may leave the frame before the object is complete. The
object then points to memory that is used again, and the process crashes. From Python 3.12 on, collections start only
between instructions (docs.python.org, What's New in Python 3.12, gc).
"""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEEDED = sys.version_info < (3, 12)


class _State:
    lock = threading.Lock()
    turned_off = False


@contextmanager
def off() -> Iterator[None]:
    """No collection starts inside of this block, in any thread. Keep it short: a program that turns the collector off
    meanwhile finds it on afterwards."""
    with _State.lock:
        _State.turned_off = _NEEDED and gc.isenabled()
        if _State.turned_off:
            gc.disable()
        try:
            yield
        finally:
            if _State.turned_off:
                gc.enable()
            _State.turned_off = False


def _after_fork() -> None:
    if _State.turned_off:
        gc.enable()
    _State.lock, _State.turned_off = threading.Lock(), False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
