"""The values that a pickle refers to again, the limits of a pickle, and the opcodes that are refused."""

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.errors import TooLarge, Unreadable

FORBIDDEN = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"R": "REDUCE", b"b": "BUILD", b"i": "INST", b"o": "OBJ",
    b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4",
    b"P": "PERSID", b"Q": "BINPERSID", b"\x97": "NEXT_BUFFER", b"\x98": "READONLY_BUFFER",
}  # fmt: skip
"""Opcodes that import, call or construct something."""


def refusal(code: bytes) -> Unreadable:
    """Returns the error for the opcode `code`, which is not plain data and is therefore refused."""
    name = FORBIDDEN.get(code)
    if name is not None:
        return Unreadable(
            f"The snapshot is refused: it has the pickle opcode {name}, which can execute code. Snapshots written by "
            "torch have only plain data. Do not load this file with pickle."
        )
    return Unreadable("The file is no allocator snapshot, or it is damaged: an unknown pickle opcode.")


# The longest text in `Memo.indices`, in characters, and the most indices of one text. Keys and actions are short.
_SHORT, _SAME_TEXTS = 32, 8
NOT_KEPT = -1


@dataclass(frozen=True)
class PickleLimits:
    """Limits of one pickle. Tests use smaller limits."""

    depth: int = 32
    """Containers inside each other. A snapshot has seven."""

    stack: int = 4_000_000
    """Values on the stack that are not in a container yet. Python's pickler adds items in batches of 1,000."""

    text: int = 1 << 20
    """Bytes of one string."""

    integer: int = 16
    """Bytes of one integer. An address has eight, or nine if its highest bit is set."""

    memo: int = 200_000_000
    """Values that can be referred to again. They take 0.8 GB of memory. A snapshot of 1 GB has about 15 million."""

    objects: int = 3_000_000
    """Values that are kept as Python objects. They take about 0.5 GB of memory."""


PICKLE_LIMITS = PickleLimits()


class Memo:
    """The values that a pickle refers to again: objects, texts, or numbers of stacks.

    `numbers[i]` describes value i: 0 or more is the number of a stack; NOT_KEPT means that the value is in `objects`,
    or was not kept; a number below NOT_KEPT stands for a text that many records repeat (`number_of_text`).
    """

    def __init__(self, limits: PickleLimits) -> None:
        self.numbers = array("i")
        self.objects: dict[int, Any] = {}
        self.indices: dict[str, list[int]] = {}
        """Maps a short text to the first few indices at which the text is stored."""
        self._limits = limits
        self._texts: list[str] = []
        self._numbers_of_texts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, value: Any) -> None:
        """Stores `value` at the next index."""
        self.put(len(self.numbers), value)

    def put(self, index: int, value: Any) -> None:
        """Stores a value at `index`. Raises TooLarge beyond a limit, or if `index` skips more than 1,024 values."""
        if index > len(self.numbers) + 1024 or index > self._limits.memo:
            raise TooLarge("The snapshot is damaged, or it refers to more values than the limit.")
        if len(self.objects) >= self._limits.objects:
            raise TooLarge(
                f"The snapshot has more than {self._limits.objects:,} different values, which is the limit. "
                "Record fewer events: torch.cuda.memory._record_memory_history(max_entries=...)."
            )
        while len(self.numbers) <= index:
            self.numbers.append(NOT_KEPT)
        self.objects[index] = value
        if type(value) is str and len(value) <= _SHORT and len(self.indices.setdefault(value, [])) < _SAME_TEXTS:
            self.indices[value].append(index)

    def number_of_text(self, text: str) -> int:
        """Returns the number that stands for `text` in `numbers`; NOT_KEPT beyond the limit."""
        if text not in self._numbers_of_texts and len(self._texts) < self._limits.objects:
            self._numbers_of_texts[text] = NOT_KEPT - 1 - len(self._texts)
            self._texts.append(text)
        return self._numbers_of_texts.get(text, NOT_KEPT)

    def extend(self, numbers: NDArray[np.int32]) -> None:
        """Stores `numbers` at the next indices: numbers of stacks or texts, or NOT_KEPT. Raises TooLarge beyond the
        limit."""
        if len(self.numbers) + len(numbers) > self._limits.memo:
            raise TooLarge("The snapshot refers to more values than the limit.")
        self.numbers.frombytes(numbers.astype(np.intc).tobytes())

    def get(self, index: int) -> Any:
        """Returns the value at `index`: an object, a text, or a StackNumber. Raises Unreadable if the value was not
        kept."""
        if 0 <= index < len(self.numbers):
            if index in self.objects:
                return self.objects[index]
            number = self.numbers[index]
            if number != NOT_KEPT:
                return StackNumber(number) if number >= 0 else self._texts[NOT_KEPT - 1 - number]
        raise Unreadable("The snapshot is damaged: it refers to a value that it does not have.")


@dataclass(frozen=True)
class StackNumber:
    """The number of a stack. It stands in place of a list of frames that was read before."""

    number: int
