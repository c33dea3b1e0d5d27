"""Reads pickles of plain data: dicts, lists, tuples, texts and numbers. Nothing of a pickle is executed.

Python's unpickler finds each class and function by `find_class`, which always raises here. Without a class or function,
a pickle cannot call anything. A small pickle can ask for much memory, so untrusted files are read with run_limited.
"""

import pickle
from typing import Any, BinaryIO

from tb_bottleneck.base.errors import Unreadable


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise Unreadable(
            f"The file is refused: it names the Python object {f'{module}.{name}'[:100]!r}, so it can execute code. "
            "Files written by torch have only plain data. Do not load this file with pickle."
        )


def plain_value(file: BinaryIO) -> Any:
    """Returns the value of the pickle in `file`.

    Raises:
        Unreadable: the pickle is damaged, or names a class or a function.
        MemoryError: the value does not fit into memory.
    """
    try:
        return _PlainUnpickler(file).load()
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # a damaged pickle can raise almost any error
        if isinstance(error, EOFError) or "truncated" in str(error):
            raise Unreadable("The file ends early: its process was stopped, or ran out of disk space.") from None
        raise Unreadable(f"The file is no pickle of plain data, or it is damaged: {error}.") from None
