"""Reads pickles of plain data: dicts, lists, tuples, strings, numbers. Nothing of a pickle is ever executed.

Opcodes that could import, call or construct anything are refused: no file that torch writes has one. All other opcodes
of protocol 2 and later that occur in snapshots are known (Lib/pickletools.py): Python writes protocol 4 or 5 since 3.8,
torch's C++ code writes protocol 2. Records in lists are passed to a consumer batch by batch, so that a file of
gigabytes is read in bounded memory.
"""

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tb_bottleneck.base.errors import TooLarge, Unreadable
from tb_bottleneck.sources.snapshot.byte_source import ByteSource
from tb_bottleneck.sources.snapshot.memo import Memo, PickleLimits, refusal

KEYS = (str, int, float, bool, type(None))
_MARK_MISSING = "The snapshot is damaged: a container has no beginning."


class Consumer(Protocol):
    """Receives records while the pickle is read, so that they need not be kept in memory."""

    def take(self, path: str, group: int, items: list[Any]) -> list[Any]:
        """Processes the known records in `items`, a batch of the items of a list. Returns the other items.

        `path` is the key of the outermost dict under which the list is. `group` is the index of the list in the list
        around it, or 0 if there is none."""
        ...


class FastRecords(Protocol):
    """Reads consecutive records of equal layout at once, in the lists under the key `path` of the outermost dict."""

    path: str

    def learn(self, record: dict[Any, Any], memo: Memo) -> None:
        """Remembers the layout of `record`: its keys in order, and the indices at which `memo` has these keys."""
        ...

    def read(self, source: ByteSource, memo: Memo, group: int) -> bool:
        """Reads the consecutive records with a known layout at the position of `source`. Returns True if there is at
        least one such record, else False. `group` is as in `Consumer.take`."""
        ...


class PlainUnpickler:
    """Reads one pickle. `consumer` receives the records in lists. `fast` reads consecutive records at once, and not
    opcode by opcode.

    The public methods other than `load` are the actions of opcodes. They raise Unreadable if the pickle is damaged, and
    TooLarge beyond a limit."""

    def __init__(self, blocks: Iterator[bytes], consumer: Consumer, fast: FastRecords, limits: PickleLimits) -> None:
        self._source = ByteSource(blocks)
        self._consumer, self._fast, self._limits = consumer, fast, limits
        self.memo = Memo(limits)
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._actions = _actions()

    def load(self) -> Any:
        """Returns the value of the pickle, without the records that `consumer` took. Raises Unreadable or TooLarge."""
        source, stack, actions = self._source, self._stack, self._actions
        while True:
            source.need(1)
            code = source.data[source.at]
            if code == _EMPTY_DICT and self._marks and self._read_fast():
                continue
            if code == _EMPTY_LIST and self._read_references():
                continue
            source.at += 1
            if code == _STOP:
                break
            action = actions.get(code)
            if action is None:
                raise refusal(bytes([code]))
            action(self)
            if len(stack) > self._limits.stack or len(self._marks) > self._limits.depth:
                raise TooLarge("The snapshot is nested too deeply, or a list in it is too long.")
        if len(stack) != 1 or self._marks:
            raise Unreadable("The snapshot is damaged: it does not have exactly one value.")
        return stack[0]

    def _read_fast(self) -> bool:
        """Reads consecutive records at once. Before that, the consumer gets the earlier records, so that the order is
        kept. Returns False if there are no records that can be read at once."""
        stack, begin = self._stack, self._marks[-1]
        if len(stack) == begin or type(stack[-1]) is dict:
            place = self._place(begin - 1, self._marks[-2] if len(self._marks) > 1 else 0)
            if place[0] == self._fast.path:
                stack[begin:] = self._consumer.take(*place, stack[begin:])
                return self._fast.read(self._source, self.memo, place[1])
        return False

    def _read_references(self) -> bool:
        """Reads a list of references to the memo, such as a list of frames, at once. Returns False for other lists."""
        source = self._source
        found = _REFERENCES.match(source.data, source.at)
        if found is None:
            return False
        source.at = found.end()
        references = _REFERENCE.findall(found[1])
        values = [self.memo.get(int.from_bytes(reference[1:], "little")) for reference in references]
        self.memo.add(values)
        self._stack.append(values)
        return True

    def push(self, value: Any) -> None:
        """Puts a value on the stack."""
        self._stack.append(value)

    def unpack(self, form: struct.Struct) -> Any:
        """Reads a number in the format `form`."""
        return form.unpack(self._source.take(form.size))[0]

    def text(self, form: struct.Struct) -> None:
        """Reads a string and puts it on the stack. `form` is the format of the string's length."""
        length = self.unpack(form)
        if length > self._limits.text:
            raise TooLarge(f"The snapshot has a string of {length:,} bytes; {self._limits.text:,} is the limit.")
        self.push(self._source.take(length).decode("utf-8", "replace"))

    def integer(self, form: struct.Struct) -> None:
        """Reads an integer and puts it on the stack. `form` is the format of the integer's length in bytes."""
        length = self.unpack(form)
        if not 0 <= length <= self._limits.integer:
            raise TooLarge(f"The snapshot has an integer of {length:,} bytes; {self._limits.integer} is the limit.")
        self.push(int.from_bytes(self._source.take(length), "little", signed=True))

    def skip(self, count: int) -> None:
        """Skips `count` bytes."""
        self._source.take(count)

    def mark(self) -> None:
        """Begins the items of a container: marks the top of the stack."""
        self._marks.append(len(self._stack))

    def items(self) -> list[Any]:
        """Removes the values since the last mark, and the mark, from the stack, and returns the values."""
        if not self._marks or self._marks[-1] > len(self._stack):
            raise Unreadable(_MARK_MISSING)
        begin = self._marks.pop()
        found = self._stack[begin:]
        del self._stack[begin:]
        return found

    def last(self, count: int) -> list[Any]:
        """Removes the last `count` values from the stack, and returns them."""
        floor = self._marks[-1] if self._marks else 0
        if len(self._stack) - count < floor:
            raise Unreadable(_MARK_MISSING)
        found = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return found

    def top(self, kind: type) -> Any:
        """Returns the container on the top of the stack, which must be of type `kind`."""
        if not self._stack or type(self._stack[-1]) is not kind:
            raise Unreadable("The snapshot is damaged: items are put into something that is no container.")
        return self._stack[-1]

    def append(self, several: bool) -> None:
        """Appends values from the stack to the list below them on the stack. Records that the consumer takes are left
        out.

        If `several` is True, all values since the last mark are appended, else one value."""
        values = self.items() if several else self.last(1)
        into = self.top(list)
        path, group = self._place(len(self._stack) - 1, self._marks[-1] if self._marks else 0)
        into += self._consumer.take(path, group, values) if values and type(values[0]) is dict else values

    def set_items(self, several: bool) -> None:
        """Puts keys and values from the stack into the dict below them on the stack.

        If `several` is True, all pairs since the last mark are used, else one pair."""
        values = self.items() if several else self.last(2)
        into = self.top(dict)
        if len(values) % 2:
            raise Unreadable("The snapshot is damaged: a dict has a key without a value.")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, KEYS):
                raise Unreadable("The snapshot is damaged: a key of a dict is neither text nor a number.")
            into[key] = value
        self._fast.learn(into, self.memo)

    def memoize(self) -> None:
        """Stores the top of the stack as the next value of the memo."""
        self.put(len(self.memo))

    def put(self, index: int) -> None:
        """Stores the top of the stack in the memo at `index`."""
        if not self._stack:
            raise Unreadable(_MARK_MISSING)
        self.memo.put(index, self._stack[-1])

    def get(self, index: int) -> None:
        """Puts the value at `index` of the memo on the stack."""
        self.push(self.memo.get(index))

    def _place(self, at: int, mark: int) -> tuple[str, int]:
        """Returns the `path` and the `group` (see `Consumer.take`) of the list at the index `at` of the stack.

        If the list is inside another list, `mark` is the index on the stack at which the new items of this other list
        begin."""
        stack, group = self._stack, 0
        if 0 < mark <= at and type(stack[mark - 1]) is list:
            group = at - mark + len(stack[mark - 1])
        elif at > 0 and type(stack[at - 1]) is list:
            group = len(stack[at - 1])
        first = self._marks[0] if self._marks else 0
        keys = stack[first : at + 1] if stack and type(stack[0]) is dict else []
        return next((key for key in reversed(keys[::2]) if type(key) is str), ""), group


_REFERENCE = re.compile(rb"h.|j....", re.DOTALL)
_REFERENCES = re.compile(rb"\]\x94\(((?:h.|j....)+)e", re.DOTALL)
_EMPTY_LIST = ord("]")
_EMPTY_DICT, _STOP = ord("}"), ord(".")
_U1, _U2, _U4, _U8, _I4 = (struct.Struct(form) for form in ("<B", "<H", "<I", "<Q", "<i"))
_F8 = struct.Struct(">d")
Action = Callable[[PlainUnpickler], None]


def _actions() -> dict[int, Action]:
    """Returns a dict: byte of an allowed opcode -> the function that executes it."""
    table: dict[bytes, Action] = {
        b"\x80": lambda it: it.skip(1),  # PROTO
        b"\x95": lambda it: it.skip(8),  # FRAME
        b"(": PlainUnpickler.mark,
        b"\x94": PlainUnpickler.memoize,
        b"q": lambda it: it.put(it.unpack(_U1)),
        b"r": lambda it: it.put(it.unpack(_U4)),
        b"h": lambda it: it.get(it.unpack(_U1)),
        b"j": lambda it: it.get(it.unpack(_U4)),
        b"}": lambda it: it.push({}),
        b"]": lambda it: it.push([]),
        b")": lambda it: it.push(()),
        b"s": lambda it: it.set_items(False),
        b"u": lambda it: it.set_items(True),
        b"a": lambda it: it.append(False),
        b"e": lambda it: it.append(True),
        b"t": lambda it: it.push(tuple(it.items())),
        b"\x85": lambda it: it.push(tuple(it.last(1))),
        b"\x86": lambda it: it.push(tuple(it.last(2))),
        b"\x87": lambda it: it.push(tuple(it.last(3))),
        b"K": lambda it: it.push(it.unpack(_U1)),
        b"M": lambda it: it.push(it.unpack(_U2)),
        b"J": lambda it: it.push(it.unpack(_I4)),
        b"\x8a": lambda it: it.integer(_U1),
        b"\x8b": lambda it: it.integer(_I4),
        b"G": lambda it: it.push(it.unpack(_F8)),
        b"N": lambda it: it.push(None),
        b"\x88": lambda it: it.push(True),
        b"\x89": lambda it: it.push(False),
        b"\x8c": lambda it: it.text(_U1),
        b"X": lambda it: it.text(_U4),
        b"\x8d": lambda it: it.text(_U8),
    }
    return {code[0]: action for code, action in table.items()}
